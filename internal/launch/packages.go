package launch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// packageRunnerFinding returns the finding for a program that runs packages.
func packageRunnerFinding(name string) Finding {
	return Finding{RunsPackage, name +
		": it downloads packages and runs their code with your rights (it is code execution, whatever a package is called)"}
}

// inspectPackageRunner returns findings about programs that run or install packages of a registry.
func inspectPackageRunner(name string, args []string) []Finding {
	g := optionGrammar{shortWithValue: "pcniwf", shortFlags: "yqvdIUh", longFlags: []string{
		"--yes", "--no", "--quiet", "--silent", "--verbose", "--offline", "--prefer-*", "--no-*", "--refresh",
		"--isolated", "--native-tls", "--ignore-existing",
	}}
	all := []Finding{packageRunnerFinding(name)}
	python := slices.Contains([]string{"uvx", "uv", "pipx", "pip"}, name)
	for rest, i := args, 0; ; {
		next := -1
		for _, w := range g.parse(rest) {
			w.index += i
			all = append(all, inspectPackageOption(name, python, w)...)
			if w.option == "" && !w.maybeValue && slices.Contains(packageSubcommands(name), w.value) {
				next = w.index + 1
			}
		}
		if next < 0 || next > len(args) {
			return all
		}
		rest, i = args[next:], next
	}
}

// packageSubcommands returns the subcommands that may precede a package, as in "npm exec PACKAGE" and "uv tool run
// PACKAGE".
func packageSubcommands(name string) []string {
	switch name {
	case "npm", "pnpm", "yarn":
		return []string{"exec", "x", "dlx", "create", "init", "install", "i", "add"}
	case "uv":
		return []string{"tool", "run", "pip", "install"}
	case "pipx", "pip":
		return []string{"run", "install", "runpip"}
	}
	return nil
}

func inspectPackageOption(name string, python bool, w argument) []Finding {
	switch {
	case w.option == "":
		if kind := foreignSource(w.value, python); kind != "" {
			return []Finding{{ForeignPackage, fmt.Sprintf("%s: argument %d is %s, not a package of the registry", name,
				w.index+1, kind)}}
		}
		return nil
	case w.isOption("--package…", "--from", "--with", "--spec") || w.option == "-p" && !python:
		if kind := foreignSource(w.value, python); kind != "" {
			return []Finding{newFinding(ForeignPackage, name, w, "is "+kind+", not a package of the registry")}
		}
		return nil
	case python && w.isOption("-p", "--python"):
		if isFilePackage(w.value) {
			return []Finding{newFinding(LoadsCode, name, w, "names the program that runs the package")}
		}
		return nil
	case w.isOption("-c", "--call…", "--shell-mode") && !python:
		return []Finding{newFinding(InlineCode, name, w, "is code that a shell runs")}
	case w.isOption("--registry…", "--index", "--default-index", "--index-url", "--extra-index-url", "--find-links",
		"-i", "-f", "--pip-args", "--index-strategy", "--allow-insecure-host", "--trusted-host"):
		return []Finding{newFinding(ForeignRegistry, name, w,
			"names where packages come from, in the place of the usual registry")}
	case w.isOption("-n", "--node-arg", "--node-options…", "--script-shell…", "--shell…", "--userconfig…",
		"--globalconfig…", "--prefix…", "--git…", "--init-module…", "--with-editable", "--with-requirements", "-w",
		"--env-file", "--config-file", "--project", "--directory", "--overrides", "--constraints", "--requirements",
		"--editable", "-C", "--dir", "--cwd"):
		return []Finding{newFinding(LoadsCode, name, w, "decides what is loaded or run beside the package")}
	}
	return nil
}

// urlScheme matches the beginning of a URL. scpAddress matches a remote path of the form "user@host:path".
var (
	urlScheme  = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	scpAddress = lazyregexp.New(`^[^/@\s]+@[^/:\s]+:[^\s]`)
)

func isAddress(s string) bool { return urlScheme().MatchString(s) || strings.HasPrefix(s, "data:") }

// foreignSource returns a description of the source of a package that does not come from the registry, such as "a git
// repository". It returns "" for a package of the registry. For npm it recognises hosted, git, remote, file and
// directory packages, and for an alias its target. For Python it recognises the forms of PEP 508.
func foreignSource(spec string, python bool) string {
	spec = strings.TrimSpace(spec)
	if name, target, ok := strings.Cut(spec, "@"); ok && python && strings.TrimSpace(target) != "" {
		spec = strings.TrimSpace(target) // "name @ address"
		if !isAddress(spec) && !isFilePackage(spec) {
			spec = strings.TrimSpace(name)
		}
	} else if i := strings.Index(spec, "@"); !python && i >= 0 && !scpAddress().MatchString(spec) && !isAddress(spec) {
		if j := strings.LastIndex(spec, "@"); j > 0 && (isAddress(spec[j+1:]) || isFilePackage(spec[j+1:]) ||
			isGitHosted(spec[j+1:])) {
			spec = spec[j+1:]
		} else if at := strings.Index(spec[1:], "@"); at >= 0 { // "name@git@host:…", "@scope/name@file:…"
			if target := spec[at+2:]; isAddress(target) || scpAddress().MatchString(target) || isGitHosted(target) ||
				isFilePackage(target) {
				spec = target
			}
		}
	}
	lower := strings.ToLower(spec)
	switch {
	case strings.HasPrefix(lower, "git+") || strings.HasPrefix(lower, "git:") || scpAddress().MatchString(spec) ||
		isGitHosted(spec) || strings.HasSuffix(lower, ".git"):
		return "a git repository"
	case isAddress(spec):
		return "an address"
	case isFilePackage(spec):
		return "a file or a directory"
	}
	return ""
}

// isGitHosted reports whether spec has the form "github:owner/name" (or that of a similar host), or the form
// "owner/name", which npm fetches from GitHub.
func isGitHosted(spec string) bool {
	for _, host := range []string{"github:", "gitlab:", "bitbucket:", "gist:", "sourcehut:"} {
		if strings.HasPrefix(strings.ToLower(spec), host) {
			return true
		}
	}
	owner, name, ok := strings.Cut(spec, "/")
	return ok && owner != "" && name != "" && !strings.HasPrefix(spec, "@") && !isFilePackage(spec) &&
		!strings.Contains(owner, ":") && !strings.Contains(name, "/")
}

// isFilePackage reports whether spec names a file, a directory or an archive.
func isFilePackage(spec string) bool {
	lower := strings.ToLower(spec)
	for _, start := range []string{"file:", "link:", "portal:", "workspace:", ".", "/", "~", `\`} {
		if strings.HasPrefix(lower, start) {
			return true
		}
	}
	for _, end := range []string{".tgz", ".tar.gz", ".tar", ".whl", ".zip", ".tar.bz2"} {
		if strings.HasSuffix(lower, end) {
			return true
		}
	}
	return len(spec) > 2 && spec[1] == ':' && (spec[2] == '\\' || spec[2] == '/') || strings.Contains(spec, `\`)
}
