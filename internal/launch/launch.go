// Package launch judges the risk of a command line before it is started.
//
// It guarantees that no variable reaches a server which makes a program load or run code that its row does not name. It
// also guarantees that a person who approves a row is told about all code of others that it runs: code among the
// arguments, downloaded packages, containers that reach the machine. Findings name programs, options and variables,
// never their values, which may be secrets.
//
// It reads command lines as their programs do, as far as that is known; a word that may or may not be an option's value
// is judged as both. It is not a security boundary: a started program may do everything its user may, unless it is
// confined. It starts nothing and reads no file.
package launch

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Spec is what would be started, variables put in.
type Spec struct {
	Command string
	Args    []string
	// Env has the row's own variables, in its order.
	Env []EnvVariable
	// IsOwnRow is set if the row belongs to the person who runs it: they may name any command.
	IsOwnRow bool
}

// A EnvVariable is one of the environment.
type EnvVariable struct{ Name, Value string }

// A Finding is a risk of a Launch that a person should know before they approve it.
type Finding struct {
	// Code is one of the constants below; they do not change.
	Code string `json:"code"`
	// Text is a sentence for people without its full stop. It has no value of the row in it.
	Text string `json:"text"`
}

// The codes of findings.
const (
	// CommandNotAllowed is a program that is not on the list of those that are known to run servers.
	CommandNotAllowed = "command-not-allowed"
	// InlineCode is code that stands among the arguments, or is read from standard input.
	InlineCode = "inline-code"
	// LoadsCode is an option that makes a program load or run code beside the program's own.
	LoadsCode = "loads-code"
	// RunsPackage is a package or an image that is downloaded and run: it is code execution.
	RunsPackage = "runs-package"
	// ForeignPackage is a package from elsewhere than the registry: an address, a repository, a file.
	ForeignPackage = "foreign-package"
	// ForeignRegistry is another registry, or index, in the place of the usual one.
	ForeignRegistry = "foreign-registry"
	// ExtraPrivileges is what takes a container's or a runtime's walls down.
	ExtraPrivileges = "privileges"
	// HostFiles is a directory or a socket of the machine within a container.
	HostFiles = "host-files"
	// Wrapper is a program that starts another one.
	Wrapper = "wrapper"
	// SteeringVariable is a variable that decides which programs are found, or where what they send goes.
	SteeringVariable = "steering-variable"
)

// Refusal returns why no operating system can start this, or why it must not be started; "" if it may. It applies to
// every row, independent of its author.
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

// StartsDrawbridge recognises the entry that puts Drawbridge into an MCP client: the very file may be read by both.
// Another program may start it for the client, such as a shell.
func StartsDrawbridge(command string, args []string) bool {
	for i, word := range append([]string{command}, args...) {
		if programName(word, true) == "drawbridge" && slices.Contains(args[i:], "serve") {
			return true
		}
	}
	return false
}

// usualPrograms returns the programs that servers are commonly run with: they may be started without a finding.
func usualPrograms() []string {
	return []string{"npx", "uvx", "node", "python", "python3", "docker", "deno", "bun", "mcpls"}
}

// IsAllowed reports whether a program may be started for a row that is not its reader's own. It must be a usual one by
// its bare name, or match an entry of allowed: a name or a path, which may be a glob. A path never counts as a usual
// program.
func IsAllowed(command string, allowed []string) bool {
	return slices.Contains(usualPrograms(), programName(command, onWindows)) && !strings.ContainsAny(command, `/\`) ||
		slices.ContainsFunc(allowed, func(a string) bool { return matchesAllowed(a, command) })
}

// matchesAllowed holds a command against an entry of the list. A name fits a name only, and a path a path; "*" stays
// within a part of it.
func matchesAllowed(entry, command string) bool {
	entry, command = withSlashes(entry), withSlashes(command)
	if strings.Contains(command, "/") && path.Clean(command) != command {
		return false // "a/../b" is not looked at as "b": what is listed is written as it is
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

// programName is the last part of a command, without what Windows puts behind it, in lower case where loose is set.
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

// Findings returns what a person should know before they let this run. The command comes first, if it is neither usual
// nor in allowed, then the arguments and the variables in their order. Findings are distinct.
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
