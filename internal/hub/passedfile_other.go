//go:build !unix

package hub

import "os"

// A passedOutput is a client's output that another process passed to this process. This system does not support passing
// files.
type passedOutput struct{}

// canPassFiles reports whether a shim can pass its client's files to the hub on this system.
const canPassFiles = false

func newPassedOutput(*os.File) *passedOutput { return &passedOutput{} }

func (*passedOutput) Write([]byte) (int, error) { return 0, errNoFilePassing }

func (*passedOutput) cancelWrite() {}

func (*passedOutput) close() error { return nil }

// A passedInput is a client's input that another process passed to this process. This system does not support passing
// files.
type passedInput struct{}

func newPassedInput(*os.File) *passedInput { return &passedInput{} }

func (*passedInput) Read([]byte) (int, error) { return 0, errNoFilePassing }

func (*passedInput) cancelRead() {}

func (*passedInput) close() error { return nil }
