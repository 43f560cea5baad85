package spawn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxDepth is how many programs that start another one are looked through.
const maxDepth = 4

// judge finds what a program and its arguments are to be told of.
func judge(command string, args []string, depth int) []Finding {
	shown := programName(command, true)
	name := versionless(shown)
	switch {
	case slices.Contains([]string{"node", "nodejs", "tsx", "ts-node", "electron"}, name):
		return judgeNode(shown, args)
	case name == "python" || name == "pypy" || name == "pythonw" || name == "py":
		return judgePython(shown, args)
	case name == "deno":
		return judgeDeno(args)
	case name == "bun":
		return judgeBun(args)
	case slices.Contains([]string{"docker", "podman", "nerdctl"}, name):
		return judgeContainer(name, args)
	case slices.Contains([]string{"npx", "bunx", "npm", "pnpm", "pnpx", "yarn", "uvx", "uv", "pipx", "pip"}, name):
		return judgePackages(name, args)
	case slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "busybox", "mksh"}, name):
		return judgeShell(name, args)
	case slices.Contains([]string{"cmd", "powershell", "pwsh"}, name):
		return judgeWindowsShell(name, args)
	case slices.Contains([]string{"perl", "ruby", "php", "lua", "luajit", "rscript", "r", "osascript", "awk", "gawk", "mawk", "groovy", "elixir", "erl", "julia", "tclsh", "expect", "jshell"}, name):
		return judgeScript(name, args)
	case slices.Contains(wrappers(), name):
		return judgeWrapper(name, args, depth)
	}
	return nil
}

// versionless takes a version off a name: python3.12, node22.
func versionless(name string) string {
	if short := strings.TrimRight(name, "0123456789.-"); short != "" {
		return short
	}
	return name
}

// finding names an option and where it stands, and never its value.
func finding(code, name string, w word, what string) Finding {
	return Finding{code, fmt.Sprintf("%s %s: argument %d %s", name, safetext.Line(w.option), w.at+1, what)}
}

// isStdin says whether a word names the standard input in the place of a file.
func isStdin(word string) bool {
	return slices.Contains([]string{"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, word)
}

// stdin is the finding for a program that takes its code from its standard input, where the requests are.
func stdin(name string) Finding {
	return Finding{InlineCode, name + " -: it runs what is sent to it as if it were code"}
}

const (
	isCode    = "is code that it runs"
	loadsMore = "has it load code beside what it is started for"
)

func judgeNode(name string, args []string) (all []Finding) {
	if len(args) == 0 {
		return []Finding{stdin(name)}
	}
	g := grammar{valued: "rC", alone: "iv", long: []string{
		"--no-*", "--enable-source-maps", "--trace-*", "--experimental-strip-types", "--experimental-transform-types", "--preserve-symlinks", "--use-system-ca", "--permission",
	}}
	for _, w := range g.read(args) {
		option := w
		option.option = strings.ReplaceAll(w.option, "_", "-") // node takes one for the other
		switch {
		case option.has("-e", "-p", "--eval", "--print"):
			all = append(all, finding(InlineCode, name, w, isCode))
		case option.has("-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "--env-file-if-exists", "--snapshot-blob", "--experimental-config-file", "--openssl-config"):
			all = append(all, finding(LoadsCode, name, w, loadsMore))
		case option.has("--run"):
			all = append(all, finding(LoadsCode, name, w, "runs a script of the project's package.json"))
		case strings.HasPrefix(option.option, "--inspect"):
			all = append(all, finding(Privileges, name, w, "lets whoever reaches its port run code in it"))
		case w.option == "" && isStdin(w.value):
			all = append(all, stdin(name))
		}
	}
	return all
}

func judgePython(name string, args []string) (all []Finding) {
	if len(args) == 0 {
		return []Finding{stdin(name)}
	}
	g := grammar{valued: "cmWX", alone: "0123bBdEhiIOPqRsStuvVx", long: []string{"--help*", "--version"}}
	for _, w := range g.read(args) {
		switch {
		case w.option == "-c":
			return append(all, finding(InlineCode, name, w, isCode))
		case w.option == "-m":
			if slices.Contains([]string{"pip", "pipx", "uv", "ensurepip"}, w.value) {
				all = append(all, finding(RunsPackage, name, w, "has it install what it is told"))
			} else if slices.Contains([]string{"code", "pdb", "timeit", "trace", "runpy", "cProfile", "profile", "idlelib"}, w.value) {
				all = append(all, finding(LoadsCode, name, w, loadsMore))
			}
			return all // what follows is the module's
		case w.option == "" && isStdin(w.value):
			all = append(all, stdin(name))
		}
	}
	return all
}

func judgeDeno(args []string) (all []Finding) {
	g := grammar{valued: "cLr", alone: "AqhVfRWNESI", long: []string{"--quiet", "--no-*", "--cached-only", "--allow-*", "--deny-*", "--unstable*", "--watch*", "--lock-write", "--frozen", "--check", "--reload"}}
	seen := false // the subcommand
	for rest, i := args, 0; ; {
		words := g.read(rest)
		next := -1
		for _, w := range words {
			w.at += i
			all = append(all, denoWord(w, seen)...)
			if w.option == "" && !seen && slices.Contains([]string{"run", "serve", "test", "bench", "task", "x", "install", "watch", "add"}, w.value) {
				next = w.at + 1
			}
		}
		if next < 0 || next > len(args) {
			return all
		}
		seen, rest, i = true, args[next:], next
	}
}

func denoWord(w word, seen bool) []Finding {
	switch {
	case w.option == "" && !seen && (w.value == "eval" || w.value == "repl"):
		return []Finding{{InlineCode, "deno " + w.value + ": its arguments are code that it runs"}}
	case w.option == "" && !seen && w.value == "task":
		return []Finding{{LoadsCode, "deno task: it runs a script of the project's deno.json or package.json"}}
	case w.option == "" && isStdin(w.value):
		return []Finding{stdin("deno")}
	case w.option == "" && isAddress(w.value):
		return []Finding{{ForeignPackage, fmt.Sprintf("deno: argument %d is code from an address", w.at+1)}}
	case w.option == "" && (strings.HasPrefix(w.value, "npm:") || strings.HasPrefix(w.value, "jsr:")):
		return []Finding{downloads("deno")}
	case w.has("-A", "--allow-all", "--allow-run", "--allow-ffi"):
		return []Finding{finding(Privileges, "deno", w, "lets the script do what its user may")}
	case w.has("--eval", "--eval-file", "--preload", "--import", "--import-map", "--env-file", "--config", "-c", "--require"):
		return []Finding{finding(LoadsCode, "deno", w, loadsMore)}
	case strings.HasPrefix(w.option, "--inspect"):
		return []Finding{finding(Privileges, "deno", w, "lets whoever reaches its port run code in it")}
	}
	return nil
}

func judgeBun(args []string) (all []Finding) {
	g := grammar{valued: "erpdcl", alone: "bih", long: []string{"--bun", "--silent", "--watch", "--hot", "--smol", "--no-*", "--prefer-offline"}}
	for _, w := range g.read(args) {
		switch {
		case w.has("-e", "-p", "--eval", "--print"):
			all = append(all, finding(InlineCode, "bun", w, isCode))
		case w.has("-r", "--preload", "--require", "--import", "--env-file", "-c", "--config"):
			all = append(all, finding(LoadsCode, "bun", w, loadsMore))
		case strings.HasPrefix(w.option, "--inspect"):
			all = append(all, finding(Privileges, "bun", w, "lets whoever reaches its port run code in it"))
		case w.option == "" && (w.value == "exec" || w.value == "repl" || w.value == "-"):
			all = append(all, Finding{InlineCode, "bun " + w.value + ": it runs what it is given as code"})
		case w.option == "" && (w.value == "x" || w.value == "create" || w.value == "install" || w.value == "add"):
			all = append(all, judgePackages("bunx", args[w.at+1:])...)
		case w.option == "" && w.value == "run":
			all = append(all, judgeBun(args[w.at+1:])...)
		}
	}
	return all
}

// judgeShell finds "-c" in whatever company: a shell runs the text behind it, and so what it names.
func judgeShell(name string, args []string) (all []Finding) {
	if name == "busybox" && len(args) > 0 {
		return judge(args[0], args[1:], maxDepth)
	}
	g := grammar{valued: "oO", alone: "abefhiklmnprtuvxBCEHPTs", long: []string{"--login", "--posix", "--norc", "--noprofile", "--verbose", "--no-*"}}
	for _, w := range g.read(args) {
		switch {
		case w.has("-c", "--command", "--init-command", "-C"):
			all = append(all, finding(InlineCode, name, w, isCode))
		case w.has("--rcfile", "--init-file"):
			all = append(all, finding(LoadsCode, name, w, loadsMore))
		case w.option == "-s" || w.option == "" && w.value == "-":
			all = append(all, stdin(name))
		}
	}
	return all
}

// judgeWindowsShell reads options by any beginning of their names, after a dash or a slash, as those programs do.
func judgeWindowsShell(name string, args []string) (all []Finding) {
	for i, arg := range args {
		option := strings.ToLower(strings.TrimLeft(arg, "-/"))
		switch {
		case option == arg || option == "": // no option
		case name == "cmd" && strings.ContainsAny(option[:1], "ckr"),
			name != "cmd" && (strings.HasPrefix("command", option) || strings.HasPrefix("encodedcommand", option) || option == "ec" || strings.HasPrefix("commandwithargs", option) || option == "cwa"):
			all = append(all, finding(InlineCode, name, word{option: arg, at: i}, isCode))
		}
	}
	return all
}

func judgeScript(name string, args []string) (all []Finding) {
	if strings.HasSuffix(name, "awk") && len(args) > 0 {
		return []Finding{{InlineCode, name + ": its program is among its arguments"}}
	}
	for _, w := range (grammar{valued: "eErRdIM", alone: "nplawWtTsiv"}).read(args) {
		switch {
		case w.has("-e", "-E", "--eval", "--execute", "--run", "-eval", "-B", "-R") || name == "php" && w.option == "-r":
			all = append(all, finding(InlineCode, name, w, isCode))
		case w.has("-r", "-M", "-m", "-I", "-l", "-d", "--require"):
			all = append(all, finding(LoadsCode, name, w, loadsMore))
		case w.option == "" && isStdin(w.value):
			all = append(all, stdin(name))
		}
	}
	return all
}

// wrappers gives programs that start the one that their arguments name.
func wrappers() []string {
	return []string{
		"env", "nice", "nohup", "timeout", "setsid", "stdbuf", "time", "command", "exec", "xargs", "ionice", "chrt", "taskset", "sudo", "doas", "su", "runuser", "unshare", "nsenter",
		"chroot", "script", "strace", "ltrace", "gdb", "watch", "flock", "parallel", "find", "ssh", "start", "wsl", "direnv", "nix", "nix-shell", "mise", "asdf", "dotenv", "op", "doppler", "caffeinate", "arch", "systemd-run", "ld.so",
	}
}

// unquote takes the quotes away that divide words in such a text.
func unquote(c rune) rune {
	if c == '"' || c == '\'' {
		return ' '
	}
	return c
}

// judgeWrapper judges what a program starts. Where its own options end is not known, so that each word behind it may be the
// program, if it is one that has something to tell.
func judgeWrapper(name string, args []string, depth int) []Finding {
	all := []Finding{{Wrapper, name + ": it starts another program, which its arguments name"}}
	if depth >= maxDepth {
		return all
	}
	for i, arg := range args {
		if variable, _, ok := strings.Cut(arg, "="); ok && Blocked(variable) {
			all = append(all, Finding{LoadsCode, fmt.Sprintf("%s: argument %d sets %s, which has programs load or run something else", name, i+1, safetext.Line(variable))})
		}
		if strings.ContainsAny(arg, " \t") && name == "env" { // -S takes one text apart
			_, text, long := strings.Cut(arg, "=")
			if !long || !strings.HasPrefix(arg, "--s") {
				text = strings.TrimLeft(arg, "-Svi ")
			}
			fields := strings.Fields(strings.Map(unquote, text))
			all = append(all, judgeWrapper(name, fields, depth+1)[1:]...)
			continue
		}
		all = append(all, judge(arg, args[i+1:], depth+1)...)
	}
	return all
}
