package launch

import (
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// UnpinnedPackage is a package without a fixed version, or an image without a digest. Each start may run another
// version of it.
const UnpinnedPackage = "unpinned-package"

// exactVersion matches a single version and not a range. exactPythonVersion matches a Python version, which may be as
// short as 1.2. imageDigest matches the end of an image name with a digest.
var (
	exactVersion = lazyregexp.New(`^v?[0-9]+(\.[0-9]+){2}([-+.][0-9A-Za-z.+-]*)?$`)
	// a version of a Python package
	exactPythonVersion = lazyregexp.New(`^v?[0-9]+(\.[0-9]+)*([-+.a-z][0-9a-z.+-]*)?$`)
	imageDigest        = lazyregexp.New(`@sha256:[0-9a-f]{64}$`)
)

// Unpinned returns a finding if the command downloads and runs a package or image that has a known name but no fixed
// version. It ignores packages that do not come from the registry; Findings reports those packages.
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

// unpinnedDenoFindings returns a finding if the arguments of deno run a package without a fixed version. Such an
// argument has the form npm:NAME@VERSION/BIN or jsr:NAME@VERSION/BIN.
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

// packageOf returns the package that the program name, such as npx, runs with the arguments args. The package is the
// value of one of the given options, otherwise the first word that is not a subcommand. packageOf returns "" if the
// package is unknown.
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

// mayTakeNextWord reports whether the word after an option may be the option's value.
func mayTakeNextWord(option string) bool {
	known := []string{"--", "-y", "--yes", "-q", "--quiet", "--silent", "--no-install", "--prefer-offline",
		"--prefer-online", "--offline", "--refresh", "--isolated", "--no-cache"}
	return strings.HasPrefix(option, "-") && !strings.Contains(option, "=") && !slices.Contains(known, option)
}

// imageOf returns the image that a container engine runs, or "" if it is unknown. It assumes that an option takes the
// next word as its value unless the option is known to take none.
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
