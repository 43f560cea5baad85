package launch

import (
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// UnpinnedPackage is a package or an image that is not named by its version, or its digest: each start may run another
// one.
const UnpinnedPackage = "unpinned-package"

// exact is a version and no range of them, digest the end of an image's name that is one for good.
var (
	exactVersion = lazyregexp.New(`^v?[0-9]+(\.[0-9]+){2}([-+.][0-9A-Za-z.+-]*)?$`)
	// of Python, where 1.2 is one
	exactPythonVersion = lazyregexp.New(`^v?[0-9]+(\.[0-9]+)*([-+.a-z][0-9a-z.+-]*)?$`)
	imageDigest        = lazyregexp.New(`@sha256:[0-9a-f]{64}$`)
)

// Unpinned returns a finding for each download without a version, if the package is known. Findings reports packages
// from elsewhere than the registry.
func (l Spec) Unpinned() []Finding {
	name := withoutVersion(programName(l.Command, true))
	switch {
	case slices.Contains([]string{"docker", "podman", "nerdctl"}, name):
		if image := imageOf(l.Args); image != "" && !imageDigest().MatchString(image) {
			return []Finding{{UnpinnedPackage, name +
				": the image is not named by its digest, so that each start may run another one (write NAME@sha256:…)"}}
		}
	case slices.Contains([]string{"npx", "bunx", "pnpx", "npm", "pnpm", "yarn"}, name):
		if spec := packageOf(name, l.Args, "-p", "--package"); spec != "" && foreignSource(spec, false) == "" &&
			!exactVersion().MatchString(spec[max(strings.LastIndex(spec, "@"), 0)+1:]) {
			return []Finding{{UnpinnedPackage, name +
				": the package has no fixed version, so that each start may run another one (write NAME@1.2.3)"}}
		}
	case name == "bun" && len(l.Args) > 0 && l.Args[0] == "x":
		return Spec{Command: "bunx", Args: l.Args[1:]}.Unpinned()
	case name == "deno":
		return unpinnedDenoFindings(l.Args)
	case slices.Contains([]string{"uvx", "uv", "pipx"}, name):
		spec := packageOf(name, l.Args, "--from", "--spec")
		_, version, _ := strings.Cut(strings.ReplaceAll(spec, "==", "@"), "@")
		if spec != "" && foreignSource(spec, true) == "" &&
			!exactPythonVersion().MatchString(strings.TrimLeft(version, "=")) {
			return []Finding{{UnpinnedPackage, name +
				": the package has no fixed version, so that each start may run another one (write NAME==1.2.3)"}}
		}
	}
	return nil
}

// unpinnedDenoFindings judges what "deno run" is to run: npm:NAME@VERSION/BIN, or the like of jsr.
func unpinnedDenoFindings(args []string) []Finding {
	if len(args) == 0 || !slices.Contains([]string{"run", "serve", "x"}, args[0]) {
		return nil
	}
	for _, arg := range args[1:] {
		registry, spec, _ := strings.Cut(arg, ":")
		switch {
		case strings.HasPrefix(arg, "-"):
		case registry != "npm" && registry != "jsr":
			return nil
		default:
			spec = strings.TrimPrefix(spec, "/")
			version, _, _ := strings.Cut(spec[strings.LastIndex(spec, "@")+1:], "/")
			if exactVersion().MatchString(version) {
				return nil
			}
			return []Finding{{UnpinnedPackage,
				"deno: the package has no fixed version, so that each start may run another one (write NAME@1.2.3)"}}
		}
	}
	return nil
}

// packageOf returns the package that a program runs: the value of one of the options that name it, else the first word
// that is not a subcommand. It is empty if unknown.
func packageOf(name string, args []string, options ...string) string {
	for i, arg := range args {
		for _, option := range options {
			if value, joined := strings.CutPrefix(arg, option+"="); joined {
				return value
			}
			if arg == option {
				return nextArg(args, i)
			}
		}
		switch {
		case arg == "--" || strings.HasPrefix(arg, "-"):
		case slices.Contains(packageSubcommands(name), arg):
		case i > 0 && mayTakeNextWord(args[i-1]):
			return ""
		default:
			return arg
		}
	}
	return ""
}

// mayTakeNextWord reports whether the word after an option may be its value.
func mayTakeNextWord(option string) bool {
	known := []string{"--", "-y", "--yes", "-q", "--quiet", "--silent", "--no-install", "--prefer-offline",
		"--prefer-online", "--offline", "--refresh", "--isolated", "--no-cache"}
	return strings.HasPrefix(option, "-") && !strings.Contains(option, "=") && !slices.Contains(known, option)
}

// imageOf returns the image of a container; empty if unknown. An option that may take the word after it does.
func imageOf(args []string) string {
	at := slices.IndexFunc(args, func(a string) bool { return a == "run" || a == "create" })
	if at < 0 {
		return ""
	}
	alone := []string{"--rm", "--init", "--interactive", "--tty", "--detach", "--quiet", "--read-only", "--privileged",
		"--publish-all"}
	clusters := regexp.MustCompile(`^-[itdqP]+$`)
	for i := at + 1; i < len(args); i++ {
		switch arg := args[i]; {
		case !strings.HasPrefix(arg, "-"):
			return arg
		case slices.Contains(alone, arg), clusters.MatchString(arg), strings.Contains(arg, "="):
		case len(arg) > 2 && arg[1] != '-': // "-ename"
		default:
			i++
		}
	}
	return ""
}
