// Package launch finds the risks of a command line before the command is started. The command line belongs to a row:
// the configuration of one server.
//
// The package refuses variables that make a program load or run code that its row does not name. It reports all foreign
// code that a row runs, for the person who approves the row. Such code is code in the arguments, a downloaded package,
// or a container that accesses the machine. Findings name programs, options and variables, never their values, which
// may be secrets.
//
// The package parses command lines as their programs do, as far as that is known. If a word may or may not be the value
// of an option, the package checks both cases. The package is not a security boundary: a started program has all rights
// of its user, unless the program is confined. The package starts no program and reads no file.
package launch

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Spec is the command line of a row with the environment variables that the row sets. References to variables are
// already expanded.
type Spec struct {
	Command string
	Args    []string
	// Env contains the variables that the row sets, in the row's order.
	Env []EnvVariable
	// IsOwnRow is set if the row belongs to the person who runs Drawbridge. That person may use any command, so
	// CommandNotAllowed is not reported.
	IsOwnRow bool
}

// An EnvVariable is one environment variable.
type EnvVariable struct{ Name, Value string }

// A Finding is a risk of a Spec that a person should know before approving it.
type Finding struct {
	// Code is one of the constants below, whose values do not change.
	Code string `json:"code"`
	// Text describes the risk in one sentence for people, without the full stop. It contains no value of the row.
	Text string `json:"text"`
}

// The codes of findings.
const (
	// CommandNotAllowed is a program that is neither one of the programs that usually run servers nor allowed by the
	// settings.
	CommandNotAllowed = "command-not-allowed"
	// InlineCode is code in the arguments, or code that is read from standard input.
	InlineCode = "inline-code"
	// LoadsCode is an option that makes a program load or run additional code.
	LoadsCode = "loads-code"
	// RunsPackage is a package or an image that is downloaded and run, which means code execution.
	RunsPackage = "runs-package"
	// ForeignPackage is a package that does not come from the registry but from a URL, a repository or a file.
	ForeignPackage = "foreign-package"
	// ForeignRegistry is a registry or index that replaces the usual one.
	ForeignRegistry = "foreign-registry"
	// ExtraPrivileges is an option that weakens the isolation of a container or of a language runtime.
	ExtraPrivileges = "privileges"
	// HostFiles is a file, directory or socket of the machine that a container can access.
	HostFiles = "host-files"
	// Wrapper is a program that starts another program.
	Wrapper = "wrapper"
	// SteeringVariable is a variable that determines which programs are found, or where requests are sent.
	SteeringVariable = "steering-variable"
)

// Refusal returns the reason why the row cannot or must not be started, or "" if it may be started. dir is the row's
// working directory. The row is refused even if the person who runs Drawbridge wrote it.
func (l Spec) Refusal(dir string) string {
	switch words := append([]string{l.Command, dir}, l.Args...); {
	case slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "\x00") }):
		return `"command", "args" and "cwd" cannot hold a NUL character`
	case StartsDrawbridge(l.Command, l.Args):
		return "starts Drawbridge itself, which would mount itself without end"
	}
	for _, v := range l.Env {
		switch {
		case v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00"):
			return fmt.Sprintf(`"env" has %q, which no environment can hold`, v.Name)
		case IsBlockedVariable(v.Name):
			return fmt.Sprintf(
				"env var '%s' is blocked for MCP server processes: it would have programs load or run something else "+
					"(a script of your own that sets it can be the command)", v.Name)
		}
	}
	return ""
}

// StartsDrawbridge reports whether a command line runs "drawbridge serve", directly or through another program such as
// a shell. The configuration of an MCP client that uses Drawbridge contains such a command. Drawbridge may read that
// configuration, and must not start itself.
func StartsDrawbridge(command string, args []string) bool {
	for i, word := range append([]string{command}, args...) {
		if programName(word, true) == "drawbridge" && slices.Contains(args[i:], "serve") {
			return true
		}
	}
	return false
}

// usualPrograms returns the programs with which servers are commonly run. A command on this list has no
// CommandNotAllowed finding.
func usualPrograms() []string {
	return []string{"npx", "uvx", "node", "python", "python3", "docker", "deno", "bun", "mcpls"}
}

// IsAllowed reports whether a program may be started for a row that is not the user's own. The command must be the
// plain name of a usual program, or match an entry of allowed. An entry is a name or a path, and may be a glob pattern.
// A path never counts as a usual program.
func IsAllowed(command string, allowed []string) bool {
	return slices.Contains(usualPrograms(), programName(command, onWindows)) && !strings.ContainsAny(command, `/\`) ||
		slices.ContainsFunc(allowed, func(a string) bool { return matchesAllowed(a, command) })
}

// matchesAllowed reports whether a command matches an entry of the list of allowed commands. A name matches only a
// name, and a path only a path. "*" does not match a slash.
func matchesAllowed(entry, command string) bool {
	entry, command = withSlashes(entry), withSlashes(command)
	if strings.Contains(command, "/") && path.Clean(command) != command {
		return false // a path such as "a/../b" never matches
	}
	ok, err := path.Match(entry, command)
	return ok && err == nil
}

const onWindows = runtime.GOOS == "windows"

func withSlashes(p string) string {
	if onWindows {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}

// programName returns the last element of a command's path. With loose, it also converts the element to lower case and
// removes Windows extensions such as ".exe".
func programName(command string, loose bool) string {
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	if !loose {
		return base
	}
	base = strings.ToLower(base)
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1", ".com"} {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// Findings returns the risks that a person should know before approving the row, each one once. The first is
// CommandNotAllowed, if the command is neither usual nor in allowed and the row is not the user's own. Then follow the
// risks of the arguments and of the variables, in their order.
func (l Spec) Findings(allowed []string) []Finding {
	var all []Finding
	if !l.IsOwnRow && !IsAllowed(l.Command, allowed) {
		all = append(all, Finding{CommandNotAllowed,
			fmt.Sprintf("MCP command '%s' not allowed: it is none of %s, nor of allowed_commands",
				safetext.Line(l.Command), strings.Join(usualPrograms(), ", "))})
	}
	all = append(all, inspectProgram(l.Command, l.Args, 0)...)
	for _, v := range l.Env {
		if isSteeringVariable(v.Name) {
			all = append(all, Finding{SteeringVariable,
				fmt.Sprintf("the variable %s decides which programs or packages are found, or where what is sent goes",
					safetext.Line(v.Name))})
		}
	}
	return uniqueFindings(all)
}

func uniqueFindings(all []Finding) (few []Finding) {
	for _, f := range all {
		if !slices.Contains(few, f) {
			few = append(few, f)
		}
	}
	return few
}
