package launch

import (
	"fmt"
	"slices"
	"strings"
)

// SplitCommandLine returns the words of a whole command line that was written as a command, such as "npx -y pkg". It
// returns nil for a single word, for a path that contains spaces, and for a text that only a shell can split.
func SplitCommandLine(command string) []string {
	words := strings.Fields(command)
	if len(words) < 2 || strings.ContainsAny(command, "\"'`\\$|&;<>()*?~\x00\n") || strings.ContainsAny(words[0], "/") {
		return nil
	}
	return words
}

// CommandLineProblem returns what is wrong with a command that is a whole command line; "" if it is a program's name.
func CommandLineProblem(command string) string {
	if words := SplitCommandLine(command); words != nil {
		return fmt.Sprintf(`"command" contains spaces: put the words after %q into "args"`, words[0])
	}
	return ""
}

// A Download is a package that a program fetches before it starts it.
type Download struct {
	// Program fetches the package: npm, uv, pipx, bun, pnpm, yarn.
	Program string
	// Package is the name as written; it may be empty.
	Package string
}

// Download returns the package that the command fetches on the first start; false if the command fetches none.
func (l Spec) Download() (Download, bool) {
	name := withoutVersion(programName(l.Command, true))
	fetchers := map[string]string{"npx": "npm", "bunx": "bun", "pnpx": "pnpm", "npm": "npm", "pnpm": "pnpm",
		"yarn": "yarn", "uvx": "uv", "uv": "uv", "pipx": "pipx"}
	fetcher, ok := fetchers[name]
	switch {
	case !ok:
		return Download{}, false
	case slices.Contains([]string{"uvx", "uv", "pipx"}, name):
		return Download{fetcher, packageOf(name, l.Args, "--from", "--spec")}, true
	}
	return Download{fetcher, packageOf(name, l.Args, "-p", "--package")}, true
}

// Name returns the package's name, or a word for it if it is unknown.
func (d Download) Name() string {
	if d.Package == "" {
		return "its package"
	}
	return d.Package
}
