//go:build !linux

package sandbox

func escapeIfAsked() {}
