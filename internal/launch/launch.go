// Package launch judges what a row would start, before anything is.
//
// It promises that no variable reaches a server by which a program is made to load or run what its row does not name,
// and that nobody approves a row without having been told what in it runs code of somebody else's choosing: code among
// the arguments, packages that are downloaded, containers that reach the machine. What it says names programs, options
// and variables, never their values, which may be secrets.
//
// It reads command lines as their programs do, as far as those can be known; where a word may be an option's value or
// not it is judged as both. It is no boundary: a program that may be started may do what its user may, unless it is
// confined. It starts nothing and looks at no file.
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
	// IsOwnRow says that the row is that of the person who runs it: any command is theirs to name.
	IsOwnRow bool
}

// A EnvVariable is one of the environment.
type EnvVariable struct{ Name, Value string }

// A Finding is one thing that a person should know of a Launch before they let it run.
type Finding struct {
	// Code is one of the constants below: it stays what it is.
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
	// LoadsCode is an option that has a program load or run something beside what it was started for.
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

// Refusal says why no operating system can start this, or why nobody may; "" is for neither. It is said of every row,
// whoever wrote it.
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

// usualPrograms gives the programs that servers are run with: those that may be started without a word about them.
func usualPrograms() []string {
	return []string{"npx", "uvx", "node", "python", "python3", "docker", "deno", "bun", "mcpls"}
}

// IsAllowed says whether a program may be started for a row that is not its reader's own: one of the usual ones by its
// bare name, or what allowed lists, a name or a path, which may have the signs of a glob. A path is never one of the
// usual programs, whatever its last part is.
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

// Findings says what a person should know before they let this run: of the command whether it is one of the usual ones
// or of allowed, then of the arguments and the variables, in their order. No two are the same.
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
