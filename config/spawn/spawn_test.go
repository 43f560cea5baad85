package spawn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codes gives the codes of findings, in order and each once.
func codes(all []Finding) string {
	var said []string
	for _, f := range all {
		if len(said) == 0 || said[len(said)-1] != f.Code {
			said = append(said, f.Code)
		}
	}
	return strings.Join(said, " ")
}

func launch(line string) Launch {
	words := strings.Fields(line)
	return Launch{Command: words[0], Args: words[1:]}
}

// TestEX7WhatACommandLineDoes is row EX-7: a program that may be started is code execution, and its reader is told so.
func TestEX7WhatACommandLineDoes(t *testing.T) {
	for line, want := range map[string]string{
		// what servers are run with
		"node dist/index.js":                            "",
		"node --no-warnings server.js -e production":    "",
		"node -- server.js --eval x":                    "",
		"python -m my_server --config c":                "",
		"python3 -u server.py -c conf.json":             "",
		"npx -y @modelcontextprotocol/server-memory":    "runs-package",
		"npx -y pkg@1.2.3 --call x":                     "runs-package",
		"npx @scope/name@latest /home/me git@host:x":    "runs-package",
		"uvx mcp-server-git@2025.1 --repository ./x":    "runs-package",
		"uvx --python 3.12 mcp-server":                  "runs-package",
		"docker run -i --rm -e TOKEN mcp/github":        "runs-package",
		"docker run -i --rm -v data:/data img -v /:/h":  "runs-package",
		"docker run --privileged=false img":             "runs-package",
		"docker run --security-opt no-new-privileges i": "runs-package",
		"deno run --allow-net server.ts":                "",

		// code among the arguments
		"node -e x":                        "inline-code",
		"node --eval=x":                    "inline-code",
		"node --eval x":                    "inline-code",
		"node -p x":                        "inline-code",
		"node -pe x":                       "inline-code",
		"node -ie x":                       "inline-code",
		"node --print x":                   "inline-code",
		"node --title t -e x":              "inline-code",
		"node -r ./a.js server.js":         "loads-code",
		"node -r fs -e x":                  "loads-code inline-code",
		"node --experimental_loader=x y":   "loads-code",
		"node --import ./a.js b.js":        "loads-code",
		"node --env-file=.env b.js":        "loads-code",
		"node --inspect-brk=0.0.0.0 b.js":  "privileges",
		"node -":                           "inline-code",
		"python -c x":                      "inline-code",
		"python3 -cx":                      "inline-code",
		"python3 -Ic x":                    "inline-code",
		"python3 -W ignore -c x":           "inline-code",
		"python3.12 -c x":                  "command-not-allowed inline-code",
		"python -":                         "inline-code",
		"python -m pip install x":          "runs-package",
		"python -m timeit x":               "loads-code",
		"deno eval x":                      "inline-code",
		"deno -q eval x":                   "inline-code",
		"deno --log-level debug eval x":    "inline-code",
		"deno run -":                       "inline-code",
		"deno run -A x.ts":                 "privileges",
		"deno run --allow-all x.ts":        "privileges",
		"deno run https://h/x.ts":          "foreign-package",
		"deno run npm:pkg":                 "runs-package",
		"bun -e 1":                         "inline-code",
		"bun --preload ./a.ts b.ts":        "loads-code",
		"bun run --eval 1":                 "inline-code",
		"bun x pkg":                        "runs-package",
		"bun exec x":                       "inline-code",
		"sh -c x":                          "command-not-allowed inline-code",
		"bash -lc x":                       "command-not-allowed inline-code",
		"bash --norc -o pipefail -ec x":    "command-not-allowed inline-code",
		"bash --rcfile f":                  "command-not-allowed loads-code",
		"busybox sh -c x":                  "command-not-allowed inline-code",
		"perl -ne x":                       "command-not-allowed inline-code",
		"ruby -e x":                        "command-not-allowed inline-code",
		"php -r x":                         "command-not-allowed inline-code",
		"awk BEGIN{} f":                    "command-not-allowed inline-code",
		"cmd /c x":                         "command-not-allowed inline-code",
		"cmd.exe /C x":                     "command-not-allowed inline-code",
		"powershell -enc x":                "command-not-allowed inline-code",
		"pwsh -NoProfile -Comm x":          "command-not-allowed inline-code",
		"env A=b node -e x":                "command-not-allowed wrapper inline-code",
		"env LD_PRELOAD=x node y":          "command-not-allowed wrapper loads-code",
		"timeout 5 nice sh -c x":           "command-not-allowed wrapper inline-code",
		"sudo docker run --privileged img": "command-not-allowed wrapper runs-package privileges",

		// packages from elsewhere
		"npx https://h/x.tgz":                    "runs-package foreign-package",
		"npx -y git+https://h/x.git":             "runs-package foreign-package",
		"npx git@github.com:o/r":                 "runs-package foreign-package",
		"npx name@git@github.com:o/r":            "runs-package foreign-package",
		"npx github:o/r":                         "runs-package foreign-package",
		"npx o/r#main":                           "runs-package foreign-package",
		"npx ./x":                                "runs-package foreign-package",
		"npx /tmp/x":                             "runs-package foreign-package",
		"npx file:../x":                          "runs-package foreign-package",
		"npx x.tgz":                              "runs-package foreign-package",
		"npx name@file:../x":                     "runs-package foreign-package",
		"npx @scope/name@https://h/x.tgz":        "runs-package foreign-package",
		"npx -p github:o/r bin":                  "runs-package foreign-package",
		"npx --package=https://h/x bin":          "runs-package foreign-package",
		"npx --pack https://h/x bin":             "runs-package foreign-package",
		"npx -c x":                               "runs-package inline-code",
		"npx --call=x":                           "runs-package inline-code",
		"npx --cal x":                            "runs-package inline-code",
		"npx -- github:o/r":                      "runs-package foreign-package",
		"npx --registry=https://h pkg":           "runs-package foreign-registry",
		"npx --regis https://h pkg":              "runs-package foreign-registry foreign-package",
		"npx --script-shell=./x pkg":             "runs-package loads-code",
		"npm exec -- o/r":                        "command-not-allowed runs-package foreign-package",
		"pnpm dlx o/r":                           "command-not-allowed runs-package foreign-package",
		"uvx --from git+https://h/x tool":        "runs-package foreign-package",
		"uvx --from name@git+https://h/x tool":   "runs-package foreign-package",
		"uvx ./dir":                              "runs-package foreign-package",
		"uvx --with https://h/x.whl tool":        "runs-package foreign-package",
		"uvx --index https://h tool":             "runs-package foreign-registry foreign-package",
		"uvx --extra-index-url=https://h tool":   "runs-package foreign-registry",
		"uvx -p ./python tool":                   "runs-package loads-code foreign-package",
		"uv tool run --from git+ssh://h/x tool":  "command-not-allowed runs-package foreign-package",
		"uv run --directory /srv/x server":       "command-not-allowed runs-package loads-code foreign-package",
		"pipx run --spec git+https://h/x tool":   "command-not-allowed runs-package foreign-package",
		"uvx --with-requirements=r.txt tool":     "runs-package loads-code",
		"npx --node-options=--require=./x pkg":   "runs-package loads-code",
		"npx --userconfig ./npmrc pkg":           "runs-package loads-code foreign-package",
		"npx --yes --quiet --prefer-offline pkg": "runs-package",

		// containers that reach the machine
		"docker run --privileged img":                         "runs-package privileges",
		"docker run --privileged false":                       "runs-package privileges",
		"docker run --privileged=true img":                    "runs-package privileges",
		"docker run -v /:/host img":                           "runs-package host-files",
		"docker run -v/:/host img":                            "runs-package host-files",
		"docker run -v=/:/host img":                           "runs-package host-files",
		"docker run -itv /:/host img":                         "runs-package host-files",
		"docker run -itv/:/host img":                          "runs-package host-files",
		"docker run --volume=/:/host img":                     "runs-package host-files",
		"docker run --name a --volume ~/x:/y img":             "runs-package host-files",
		"docker run -v .:/y img":                              "runs-package host-files",
		`docker run -v C:\x:/y img`:                           "runs-package host-files",
		"docker run --mount type=bind,src=/,dst=/h img":       "runs-package host-files",
		"docker run --mount=src=/,type=bind,dst=/h img":       "runs-package host-files",
		"docker run --mount src=v,dst=/h,type=volume img":     "runs-package",
		"docker run --mount type=volume,volume-opt=device=/ ": "runs-package host-files",
		"docker run -v /var/run/docker.sock:/s img":           "runs-package host-files",
		"docker run --volumes-from c img":                     "runs-package host-files",
		"docker run --pid=host img":                           "runs-package privileges",
		"docker run --pid host img":                           "runs-package privileges",
		"docker run --net=host img":                           "runs-package privileges",
		"docker run --network host img":                       "runs-package privileges",
		"docker run --network container:x img":                "runs-package privileges",
		"docker run --ipc=host img":                           "runs-package privileges",
		"docker run --userns=host img":                        "runs-package privileges",
		"docker run --cap-add=ALL img":                        "runs-package privileges",
		"docker run --device /dev/sda img":                    "runs-package privileges",
		"docker run --security-opt seccomp=unconfined img":    "runs-package privileges",
		"docker -H tcp://h run img":                           "runs-package privileges",
		"docker --context far run img":                        "runs-package privileges",
		"docker container run --privileged img":               "runs-package privileges",
		"docker compose up":                                   "runs-package privileges",
		"docker run --env-file .env img":                      "runs-package host-files",
		"podman run --privileged img":                         "command-not-allowed runs-package privileges",

		// commands
		"./node x.js":          "command-not-allowed",
		"/tmp/npx pkg":         "command-not-allowed runs-package",
		`.\npx.cmd pkg`:        "command-not-allowed runs-package",
		"my-server":            "command-not-allowed",
		"-x":                   "command-not-allowed",
		"../bin/python3 -c x":  "command-not-allowed inline-code",
		"mcpls --stdio":        "",
		"/opt/listed/tool x":   "",
		"/opt/listed/../evil":  "command-not-allowed",
		"/opt/listed/a/b":      "command-not-allowed",
		"/home/me/bin/own arg": "",
		"tool":                 "",
	} {
		got := launch(line).Findings([]string{"/opt/listed/*", "/home/me/bin/own", "tool"})
		if diff := cmp.Diff(want, codes(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s\n%v", line, diff, got)
		}
	}
}

// TestFindingsSayWhatAndWhere shows a finding of each kind as a person reads it.
func TestFindingsSayWhatAndWhere(t *testing.T) {
	for line, want := range map[string][]Finding{
		"/tmp/x": {{CommandNotAllowed, "MCP command '/tmp/x' not allowed: it is none of npx, uvx, node, python, python3, docker, deno, bun, mcpls, nor of allowed_commands"}},
		"node --eval=s3cret": {
			{InlineCode, "node --eval: argument 1 is code that it runs"},
		},
		"npx -y git+https://me:s3cret@h/x": {
			downloads("npx"), {ForeignPackage, "npx: argument 2 is a git repository, and no package of the registry"},
		},
		"docker run -v /:/h img": {
			{RunsPackage, "docker: it downloads an image and runs it (it is code execution, whatever the image is called)"},
			{HostFiles, "docker -v: argument 2 puts files of the machine into the container"},
		},
	} {
		if diff := cmp.Diff(want, launch(line).Findings(nil)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", line, diff)
		}
	}
	for _, args := range [][]string{{"-S", "sh -c x"}, {"-S sh -c x"}, {"-iS", `'sh' "-c" x`}, {"--split-string=sh -c x"}} {
		if got := codes((Launch{Command: "env", Args: args}).Findings([]string{"env"})); got != "wrapper inline-code" {
			t.Errorf("env %q: %s", args, got)
		}
	}
	l := Launch{Command: "node", Env: []Variable{{"HTTPS_PROXY", "s3cret"}, {"API_KEY", "s3cret"}, {"npm_config_registry", "s3cret"}}}
	want := []Finding{
		{SteeringVariable, "the variable HTTPS_PROXY decides which programs or packages are found, or where what is sent goes"},
		{SteeringVariable, "the variable npm_config_registry decides which programs or packages are found, or where what is sent goes"},
	}
	if diff := cmp.Diff(want, l.Findings(nil)); diff != "" {
		t.Error(diff)
	}
}

// TestEX4BlockedVariables is row EX-4 for what a row says: the list of the seeds, families of names, and Windows' case.
func TestEX4BlockedVariables(t *testing.T) {
	for _, name := range []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_PROFILE", "LD_DEBUG_OUTPUT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH",
		"DYLD_FALLBACK_LIBRARY_PATH", "DYLD_X", "BASH_ENV", "ENV", "CDPATH", "GLOBIGNORE", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE",
		"PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "RUBYLIB", "RUBYOPT", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT",
		"JAVA_TOOL_OPTIONS", "BASH_FUNC_x%%", "BASH_FUNC_", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_TRACE", "GIT_TRACE2_EVENT",
	} {
		if !blocked(name, false) || !blocked(strings.ToLower(name), true) {
			t.Errorf("%s is not blocked", name)
		}
		if blocked(strings.ToLower(name), false) && name != strings.ToLower(name) {
			t.Errorf("%s is blocked where case counts", strings.ToLower(name))
		}
	}
	for _, name := range []string{
		"PATH", "HOME", "API_KEY", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "GITHUB_TOKEN", "GIT_AUTHOR_NAME", "GIT_TERMINAL_PROMPT", "GIT_BASE_DIR", "HTTPS_PROXY",
		"NODE_ENV", "ENVIRONMENT", "MY_LD_PRELOAD", "LDAP_URL", "", "NODE_OPTIONS_X",
	} {
		if blocked(name, false) || blocked(name, true) {
			t.Errorf("%q is blocked", name)
		}
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		launch Launch
		want   string
	}{
		"none":    {Launch{Command: "npx", Args: []string{"x"}, Env: []Variable{{"A", "b"}}}, ""},
		"NUL":     {Launch{Command: "x", Args: []string{"a\x00"}}, `"command", "args" and "cwd" cannot hold a NUL character`},
		"itself":  {Launch{Command: "sh", Args: []string{"-c", "/x/drawbridge", "serve"}}, "starts Drawbridge itself, which would mount itself without end"},
		"nothing": {Launch{Command: "x", Env: []Variable{{"", "b"}}}, `"env" has "", which no environment can hold`},
		"blocked": {Launch{Command: "x", Env: []Variable{{"A", "b"}, {"LD_PRELOAD", "s3cret"}}},
			"env var 'LD_PRELOAD' is blocked for MCP server processes: it would have programs load or run something else (a script of your own that sets it can be the command)"},
	} {
		if got := tt.launch.Fault("/x"); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// FuzzFindings shows that no command line breaks the judge, that it says the same twice, and that it never repeats a value.
func FuzzFindings(f *testing.F) {
	for _, s := range []string{"node\x00-pe\x00x", "docker\x00run\x00-v=/:/h\x00i", "env\x00-S\x00sh -c x", "npx\x00--\x00a@b@c", "uvx\x00--from\x00x @ y", "deno\x00--\x00-", "bun\x00x\x00-", "busybox", "npm\x00exec\x00exec"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "\x00")
		l := Launch{Command: words[0], Args: words[1:]}
		all := l.Findings(nil)
		if diff := cmp.Diff(all, l.Findings(nil)); diff != "" {
			t.Error(diff)
		}
		marked := Launch{Command: words[0]}
		for _, w := range words[1:] {
			if option, _, ok := strings.Cut(w, "="); ok {
				w = option + "=q7secret"
			}
			marked.Args = append(marked.Args, w)
		}
		for _, found := range marked.Findings(nil) {
			if strings.Contains(found.Text, "q7secret") && !strings.Contains(words[0], "q7secret") {
				t.Errorf("%q repeats a value", found.Text)
			}
		}
	})
}
