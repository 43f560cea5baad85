package launch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxWrapperDepth is how many nested wrapper programs are inspected.
const maxWrapperDepth = 4

// inspectProgram returns the findings about a program and its arguments. depth is the number of wrapper programs before
// it.
func inspectProgram(command string, args []string, depth int) []Finding {
	shown := programName(command, true)
	name := withoutVersion(shown)
	switch {
	case slices.Contains([]string{"node", "nodejs", "tsx", "ts-node", "electron"}, name):
		return inspectNode(shown, args)
	case name == "python" || name == "pypy" || name == "pythonw" || name == "py":
		return inspectPython(shown, args)
	case name == "deno":
		return inspectDeno(args)
	case name == "bun":
		return inspectBun(args)
	case slices.Contains([]string{"docker", "podman", "nerdctl"}, name):
		return inspectContainer(name, args)
	case slices.Contains([]string{"npx", "bunx", "npm", "pnpm", "pnpx", "yarn", "uvx", "uv", "pipx", "pip"}, name):
		return inspectPackageRunner(name, args)
	case slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "busybox", "mksh"},
		name):
		return inspectShell(name, args)
	case slices.Contains([]string{"cmd", "powershell", "pwsh"}, name):
		return inspectWindowsShell(name, args)
	case slices.Contains([]string{"perl", "ruby", "php", "lua", "luajit", "rscript", "r", "osascript", "awk", "gawk",
		"mawk", "groovy", "elixir", "erl", "julia", "tclsh", "expect", "jshell"}, name):
		return inspectScript(name, args)
	case slices.Contains(wrapperPrograms(), name):
		return inspectWrapper(name, args, depth)
	}
	return nil
}

// withoutVersion returns a program name without a version at its end: "python" for "python3.12", "node" for "node22".
func withoutVersion(name string) string {
	if short := strings.TrimRight(name, "0123456789.-"); short != "" {
		return short
	}
	return name
}

// newFinding returns a finding that names an option and its position, but not its value.
func newFinding(code, name string, w argument, what string) Finding {
	return Finding{code, fmt.Sprintf("%s %s: argument %d %s", name, safetext.Line(w.option), w.index+1, what)}
}

// isStdinArgument reports whether a word in place of a file name means standard input.
func isStdinArgument(word string) bool {
	return slices.Contains([]string{"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, word)
}

// stdinFinding returns the finding for a program that reads its code from standard input, on which the server receives
// requests.
func stdinFinding(name string) Finding {
	return Finding{InlineCode, name + " -: it runs what is sent to it as if it were code"}
}

const (
	textIsCode    = "is code that it runs"
	textLoadsMore = "has it load code beside what it is started for"
)

func inspectNode(name string, args []string) (all []Finding) {
	if len(args) == 0 {
		return []Finding{stdinFinding(name)}
	}
	g := optionGrammar{shortWithValue: "rC", shortFlags: "iv", longFlags: []string{
		"--no-*", "--enable-source-maps", "--trace-*", "--experimental-strip-types", "--experimental-transform-types",
		"--preserve-symlinks", "--use-system-ca", "--permission",
	}}
	for _, w := range g.parse(args) {
		option := w
		option.option = strings.ReplaceAll(w.option, "_", "-") // node accepts "_" for "-"
		switch {
		case option.isOption("-e", "-p", "--eval", "--print"):
			all = append(all, newFinding(InlineCode, name, w, textIsCode))
		case option.isOption("-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file",
			"--env-file-if-exists", "--snapshot-blob", "--experimental-config-file", "--openssl-config"):
			all = append(all, newFinding(LoadsCode, name, w, textLoadsMore))
		case option.isOption("--run"):
			all = append(all, newFinding(LoadsCode, name, w, "runs a script of the project's package.json"))
		case strings.HasPrefix(option.option, "--inspect"):
			all = append(all, newFinding(ExtraPrivileges, name, w, "lets anyone who reaches its port run code in it"))
		case w.option == "" && isStdinArgument(w.value):
			all = append(all, stdinFinding(name))
		}
	}
	return all
}

func inspectPython(name string, args []string) (all []Finding) {
	if len(args) == 0 {
		return []Finding{stdinFinding(name)}
	}
	g := optionGrammar{shortWithValue: "cmWX", shortFlags: "0123bBdEhiIOPqRsStuvVx",
		longFlags: []string{"--help*", "--version"}}
	for _, w := range g.parse(args) {
		switch {
		case w.option == "-c":
			return append(all, newFinding(InlineCode, name, w, textIsCode))
		case w.option == "-m":
			if slices.Contains([]string{"pip", "pipx", "uv", "ensurepip"}, w.value) {
				all = append(all, newFinding(RunsPackage, name, w, "has it install what it is told"))
			} else if slices.Contains([]string{"code", "pdb", "timeit", "trace", "runpy", "cProfile", "profile",
				"idlelib"}, w.value) {
				all = append(all, newFinding(LoadsCode, name, w, textLoadsMore))
			}
			return all // the following arguments belong to the module
		case w.option == "" && isStdinArgument(w.value):
			all = append(all, stdinFinding(name))
		}
	}
	return all
}

func inspectDeno(args []string) (all []Finding) {
	g := optionGrammar{shortWithValue: "cLr", shortFlags: "AqhVfRWNESI", longFlags: []string{"--quiet", "--no-*",
		"--cached-only", "--allow-*", "--deny-*", "--unstable*", "--watch*", "--lock-write", "--frozen",
		"--check", "--reload"}}
	seen := false // whether the subcommand was seen
	for rest, i := args, 0; ; {
		words := g.parse(rest)
		next := -1
		for _, w := range words {
			w.index += i
			all = append(all, inspectDenoOption(w, seen)...)
			if w.option == "" && !seen && slices.Contains([]string{"run", "serve", "test", "bench", "task", "x",
				"install", "watch", "add"}, w.value) {
				next = w.index + 1
			}
		}
		if next < 0 || next > len(args) {
			return all
		}
		seen, rest, i = true, args[next:], next
	}
}

func inspectDenoOption(w argument, seen bool) []Finding {
	switch {
	case w.option == "" && !seen && (w.value == "eval" || w.value == "repl"):
		return []Finding{{InlineCode, "deno " + w.value + ": its arguments are code that it runs"}}
	case w.option == "" && !seen && w.value == "task":
		return []Finding{{LoadsCode, "deno task: it runs a script of the project's deno.json or package.json"}}
	case w.option == "" && isStdinArgument(w.value):
		return []Finding{stdinFinding("deno")}
	case w.option == "" && isAddress(w.value):
		return []Finding{{ForeignPackage, fmt.Sprintf("deno: argument %d is code from an address", w.index+1)}}
	case w.option == "" && (strings.HasPrefix(w.value, "npm:") || strings.HasPrefix(w.value, "jsr:")):
		return []Finding{packageRunnerFinding("deno")}
	case w.isOption("-A", "--allow-all", "--allow-run", "--allow-ffi"):
		return []Finding{newFinding(ExtraPrivileges, "deno", w, "lets the script do what its user may")}
	case w.isOption("--eval", "--eval-file", "--preload", "--import", "--import-map", "--env-file", "--config",
		"-c", "--require"):
		return []Finding{newFinding(LoadsCode, "deno", w, textLoadsMore)}
	case strings.HasPrefix(w.option, "--inspect"):
		return []Finding{newFinding(ExtraPrivileges, "deno", w, "lets anyone who reaches its port run code in it")}
	}
	return nil
}

func inspectBun(args []string) (all []Finding) {
	g := optionGrammar{shortWithValue: "erpdcl", shortFlags: "bih", longFlags: []string{"--bun", "--silent", "--watch",
		"--hot", "--smol", "--no-*", "--prefer-offline"}}
	for _, w := range g.parse(args) {
		switch {
		case w.isOption("-e", "-p", "--eval", "--print"):
			all = append(all, newFinding(InlineCode, "bun", w, textIsCode))
		case w.isOption("-r", "--preload", "--require", "--import", "--env-file", "-c", "--config"):
			all = append(all, newFinding(LoadsCode, "bun", w, textLoadsMore))
		case strings.HasPrefix(w.option, "--inspect"):
			all = append(all, newFinding(ExtraPrivileges, "bun", w, "lets anyone who reaches its port run code in it"))
		case w.option == "" && (w.value == "exec" || w.value == "repl" || w.value == "-"):
			all = append(all, Finding{InlineCode, "bun " + w.value + ": it runs what it is given as code"})
		case w.option == "" && (w.value == "x" || w.value == "create" || w.value == "install" || w.value == "add"):
			all = append(all, inspectPackageRunner("bunx", args[w.index+1:])...)
		case w.option == "" && w.value == "run":
			all = append(all, inspectBun(args[w.index+1:])...)
		}
	}
	return all
}

// inspectShell returns findings about the arguments of a shell. The option "-c" runs the next word as code.
// inspectShell also recognises it in a combination of short options, such as "-lc".
func inspectShell(name string, args []string) (all []Finding) {
	if name == "busybox" && len(args) > 0 {
		return inspectProgram(args[0], args[1:], maxWrapperDepth)
	}
	g := optionGrammar{shortWithValue: "oO", shortFlags: "abefhiklmnprtuvxBCEHPTs", longFlags: []string{"--login",
		"--posix", "--norc", "--noprofile", "--verbose", "--no-*"}}
	for _, w := range g.parse(args) {
		switch {
		case w.isOption("-c", "--command", "--init-command", "-C"):
			all = append(all, newFinding(InlineCode, name, w, textIsCode))
		case w.isOption("--rcfile", "--init-file"):
			all = append(all, newFinding(LoadsCode, name, w, textLoadsMore))
		case w.option == "-s" || w.option == "" && w.value == "-":
			all = append(all, stdinFinding(name))
		}
	}
	return all
}

// inspectWindowsShell returns findings about the arguments of cmd and PowerShell. As these programs do, it accepts
// options after a dash or a slash. For PowerShell it also accepts abbreviated options.
func inspectWindowsShell(name string, args []string) (all []Finding) {
	for i, arg := range args {
		option := strings.ToLower(strings.TrimLeft(arg, "-/"))
		switch {
		case option == arg || option == "": // not an option
		case name == "cmd" && strings.ContainsAny(option[:1], "ckr"),
			name != "cmd" && (strings.HasPrefix("command", option) || strings.HasPrefix("encodedcommand", option) ||
				option == "ec" || strings.HasPrefix("commandwithargs", option) || option == "cwa"):
			all = append(all, newFinding(InlineCode, name, argument{option: arg, index: i}, textIsCode))
		}
	}
	return all
}

func inspectScript(name string, args []string) (all []Finding) {
	if strings.HasSuffix(name, "awk") && len(args) > 0 {
		return []Finding{{InlineCode, name + ": its program is among its arguments"}}
	}
	for _, w := range (optionGrammar{shortWithValue: "eErRdIM", shortFlags: "nplawWtTsiv"}).parse(args) {
		switch {
		case w.isOption("-e", "-E", "--eval", "--execute", "--run", "-eval", "-B", "-R") || name == "php" &&
			w.option == "-r":
			all = append(all, newFinding(InlineCode, name, w, textIsCode))
		case w.isOption("-r", "-M", "-m", "-I", "-l", "-d", "--require"):
			all = append(all, newFinding(LoadsCode, name, w, textLoadsMore))
		case w.option == "" && isStdinArgument(w.value):
			all = append(all, stdinFinding(name))
		}
	}
	return all
}

// wrapperPrograms returns programs that start the program named in their arguments.
func wrapperPrograms() []string {
	return []string{
		"env", "nice", "nohup", "timeout", "setsid", "stdbuf", "time", "command", "exec", "xargs", "ionice", "chrt",
		"taskset", "sudo", "doas", "su", "runuser", "unshare", "nsenter",
		"chroot", "script", "strace", "ltrace", "gdb", "watch", "flock", "parallel", "find", "ssh", "start", "wsl",
		"direnv", "nix", "nix-shell", "mise", "asdf", "dotenv", "op", "doppler", "caffeinate", "arch",
		"systemd-run", "ld.so",
	}
}

// dropQuote replaces a quotation mark by a space, so that it separates words.
func dropQuote(c rune) rune {
	if c == '"' || c == '\'' {
		return ' '
	}
	return c
}

// inspectWrapper returns findings about the program that a wrapper such as env or sudo starts. It is unknown where the
// wrapper's own options end. Therefore each argument is inspected as if it were the program, together with the
// arguments after it.
func inspectWrapper(name string, args []string, depth int) []Finding {
	all := []Finding{{Wrapper, name + ": it starts another program, which its arguments name"}}
	if depth >= maxWrapperDepth {
		return all
	}
	for i, arg := range args {
		if variable, _, ok := strings.Cut(arg, "="); ok && IsBlockedVariable(variable) {
			all = append(all,
				Finding{LoadsCode, fmt.Sprintf("%s: argument %d sets %s, which has programs load or run something else",
					name, i+1, safetext.Line(variable))})
		}
		if strings.ContainsAny(arg, " \t") && name == "env" { // env -S splits one text into words
			_, text, long := strings.Cut(arg, "=")
			if !long || !strings.HasPrefix(arg, "--s") {
				text = strings.TrimLeft(arg, "-Svi ")
			}
			fields := strings.Fields(strings.Map(dropQuote, text))
			all = append(all, inspectWrapper(name, fields, depth+1)[1:]...)
			continue
		}
		all = append(all, inspectProgram(arg, args[i+1:], depth+1)...)
	}
	return all
}
