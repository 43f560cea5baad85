package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// SandboxSettings configures the tool run_python, which runs Python scripts. With the zero value, the tool is for the
// person at the command line and for Drawbridge's own agent, and the limits have their defaults.
type SandboxSettings struct {
	// Clients controls whether clients are listed run_python in every mode of tool discovery; nil means false. In the mode
	// "code" they always are.
	Clients *bool
	// Timeout is how long a script may run; 0 means 30 seconds. The time in which it waits for an approval is not
	// counted.
	Timeout time.Duration
	// Memory is the maximum size of a script's memory in bytes, and Output that of each of its outputs; 0 means 256 MiB
	// and 256 KiB.
	Memory, Output int64
	// Result is the maximum number of bytes of a script's result that its caller is returned; 0 means 32 KiB. The rest is
	// kept for the next script. The person at the command line gets the whole.
	Result int64
	// Calls is the maximum number of calls of tools by one script; 0 means 1,000.
	Calls int
	// Workers is the maximum number of scripts that run at the same time; 0 means the number of processors, at least 2.
	Workers int
}

// sandboxSettingTable returns the settings in [sandbox].
func sandboxSettingTable() []setting {
	return []setting{
		{"sandbox", "clients", "true or false", "false",
			"whether clients may call run_python in every mode of tool discovery; in the mode code they always may. A token needs the scope sandbox",
			func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Sandbox.Clients, v) }},
		{"sandbox", "timeout", "time", "30s",
			"how long a script may run, without the time in which it waits for an approval",
			func(r *settingsReader, v configfile.Node) error {
				return readPositiveDuration(&r.settings.Sandbox.Timeout, v)
			}},
		{"sandbox", "memory", "whole number", "268435456",
			"the maximum size of a script's memory in bytes: from 33554432 to 1073741824",
			func(r *settingsReader, v configfile.Node) error {
				return readScriptMemory(&r.settings.Sandbox.Memory, v)
			}},
		{"sandbox", "output", "whole number", "262144",
			"the maximum number of bytes that are kept of a script's output; a script that writes 16 times as much is ended",
			func(r *settingsReader, v configfile.Node) error { return readByteCount(&r.settings.Sandbox.Output, v) }},
		{"sandbox", "result", "whole number", "32768",
			"the maximum number of bytes of a script's result that a client is returned; the rest is kept for the next script of the session",
			func(r *settingsReader, v configfile.Node) error { return readByteCount(&r.settings.Sandbox.Result, v) }},
		{"sandbox", "calls", "whole number", "1000",
			"the maximum number of calls of tools by one script",
			func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.settings.Sandbox.Calls, v) }},
		{"sandbox", "workers", "whole number", "the number of processors, at least 2",
			"the maximum number of scripts that run at the same time",
			func(r *settingsReader, v configfile.Node) error {
				return readPositiveInt(&r.settings.Sandbox.Workers, v)
			}},
	}
}

// The limits of the setting memory of [sandbox], in bytes.
const (
	minScriptMemory = 32 << 20
	maxScriptMemory = 1 << 30
)

// readScriptMemory reads a number of bytes that a script can have.
func readScriptMemory(to *int64, v configfile.Node) error {
	if err := readByteCount(to, v); err != nil || *to < minScriptMemory || *to > maxScriptMemory {
		return mustBeError("a whole number of bytes from %d to %d", minScriptMemory, maxScriptMemory)
	}
	return nil
}
