package launch

import (
	"fmt"
	"slices"
	"strings"
)

// SplitCommandLine splits a command that is a whole command line, such as "npx -y pkg", into its words. It returns nil
// for a single word, for a path that contains spaces, and for a text that only a shell can split.
func SplitCommandLine(command string) []string {
	words := strings.Fields(command)
	if len(words) < 2 || strings.ContainsAny(command, "\"'`\\$|&;<>()*?~\x00\n") || strings.ContainsAny(words[0], "/") {
		return nil
	}
	return words
}

// CommandLineProblem returns an error text for a command that is a whole command line, or "" for the name of a program.
func CommandLineProblem(command string) string {
	if words := SplitCommandLine(command); words != nil {
		return fmt.Sprintf(`"command" contains spaces: put the words after %q into "args"`, words[0])
	}
	return ""
}

// A Download is a package that a command downloads and then runs.
type Download struct {
	// Program is the name of the package manager that downloads the package: npm, uv, pipx, bun, pnpm or yarn.
	Program string
	// Package is the name of the package as written; it may be empty.
	Package string
}

// Download returns the package that the command downloads at the first start. It returns false if the command does not
// download a package.
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

// Name returns the package's name, or "its package" if the name is unknown.
func (d Download) Name() string {
	if d.Package == "" {
		return "its package"
	}
	return d.Package
}
