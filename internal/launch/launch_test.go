package launch

import (
	"os"
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

func launch(line string) Spec {
	words := strings.Fields(line)
	return Spec{Command: words[0], Args: words[1:]}
}

// TestEX7WhatACommandLineDoes is row EX-7: a program that may be started is code execution, and its reader is told so.
func TestEX7WhatACommandLineDoes(t *testing.T) {
	data, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(data)) {
		line, want, ok := strings.Cut(strings.TrimSpace(row), " =>")
		if !ok && line != "" && line[0] != '#' {
			t.Errorf("a row without a verdict: %s", line)
		}
		if !ok {
			continue
		}
		line, want = strings.TrimSpace(line), strings.TrimSpace(want)
		got := launch(line).Findings([]string{"/opt/listed/*", "/home/me/bin/own", "tool"})
		if diff := cmp.Diff(want, codes(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s\n%v", line, diff, got)
		}
	}
}

// TestFindingsSayWhatAndWhere shows a finding of each kind as a person reads it.
func TestFindingsSayWhatAndWhere(t *testing.T) {
	for line, want := range map[string][]Finding{
		"/tmp/x": {{CommandNotAllowed,
			"MCP command '/tmp/x' not allowed: it is none of npx, uvx, node, python, python3, docker, deno, bun, mcpls, nor of allowed_commands"}},
		"node --eval=s3cret": {
			{InlineCode, "node --eval: argument 1 is code that it runs"},
		},
		"npx -y git+https://me:s3cret@h/x": {
			packageRunnerFinding("npx"),
			{ForeignPackage, "npx: argument 2 is a git repository, not a package of the registry"},
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
	for _, args := range [][]string{{"-S", "sh -c x"}, {"-S sh -c x"}, {"-iS", `'sh' "-c" x`},
		{"--split-string=sh -c x"}} {
		if got := codes((Spec{Command: "env", Args: args}).Findings([]string{"env"})); got != "wrapper inline-code" {
			t.Errorf("env %q: %s", args, got)
		}
	}
	l := Spec{Command: "node", Args: []string{"x.js"}, Env: []EnvVariable{{"HTTPS_PROXY", "s3cret"},
		{"API_KEY", "s3cret"}, {"npm_config_registry", "s3cret"}, {"BUN_CONFIG_REGISTRY", "s3cret"},
		{"MANPAGER", "s3cret"}}}
	want := []Finding{
		{SteeringVariable,
			"the variable HTTPS_PROXY decides which programs or packages are found, or where what is sent goes"},
		{SteeringVariable,
			"the variable npm_config_registry decides which programs or packages are found, or where what is sent goes"},
		{SteeringVariable,
			"the variable BUN_CONFIG_REGISTRY decides which programs or packages are found, or where what is sent goes"},
		{SteeringVariable,
			"the variable MANPAGER decides which programs or packages are found, or where what is sent goes"},
	}
	if diff := cmp.Diff(want, l.Findings(nil)); diff != "" {
		t.Error(diff)
	}
}

// TestEX4BlockedVariables is row EX-4 for what a row says: the list of the seeds, families of names, and Windows' case.
func TestEX4BlockedVariables(t *testing.T) {
	for _, name := range []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_PROFILE", "LD_DEBUG_OUTPUT", "DYLD_INSERT_LIBRARIES",
		"DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH",
		"DYLD_FALLBACK_LIBRARY_PATH", "DYLD_X", "BASH_ENV", "ENV", "CDPATH", "GLOBIGNORE", "PYTHONPATH",
		"PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE",
		"PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "RUBYLIB", "RUBYOPT", "NODE_OPTIONS",
		"NODE_PATH", "PERL5LIB", "PERL5OPT",
		"JAVA_TOOL_OPTIONS", "BASH_FUNC_x%%", "BASH_FUNC_", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL",
		"GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_TRACE", "GIT_TRACE2_EVENT",
	} {
		if !isBlockedName(name, false) || !isBlockedName(strings.ToLower(name), true) {
			t.Errorf("%s is not blocked", name)
		}
		if isBlockedName(strings.ToLower(name), false) && name != strings.ToLower(name) {
			t.Errorf("%s is blocked where case counts", strings.ToLower(name))
		}
	}
	for _, name := range []string{
		"PATH", "HOME", "API_KEY", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "GITHUB_TOKEN",
		"GIT_AUTHOR_NAME", "GIT_TERMINAL_PROMPT", "GIT_BASE_DIR", "HTTPS_PROXY",
		"NODE_ENV", "ENVIRONMENT", "MY_LD_PRELOAD", "LDAP_URL", "", "NODE_OPTIONS_X",
	} {
		if isBlockedName(name, false) || isBlockedName(name, true) {
			t.Errorf("%q is blocked", name)
		}
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		launch Spec
		want   string
	}{
		"none": {Spec{Command: "npx", Args: []string{"x"}, Env: []EnvVariable{{"A", "b"}}}, ""},
		"NUL": {Spec{Command: "x", Args: []string{"a\x00"}},
			`"command", "args" and "cwd" cannot hold a NUL character`},
		"itself": {Spec{Command: "sh", Args: []string{"-c", "/x/drawbridge", "serve"}},
			"starts Drawbridge itself, which would mount itself without end"},
		"nothing": {Spec{Command: "x", Env: []EnvVariable{{"", "b"}}}, `"env" has "", which no environment can hold`},
		"blocked": {Spec{Command: "x", Env: []EnvVariable{{"A", "b"}, {"LD_PRELOAD", "s3cret"}}},
			"env var 'LD_PRELOAD' is blocked for MCP server processes: it would have programs load or run something else (a script of your own that sets it can be the command)"},
	} {
		if got := tt.launch.Refusal("/x"); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// FuzzFindings shows that no command line breaks the judge, that it says the same twice, and that it never repeats a
// value.
func FuzzFindings(f *testing.F) {
	for _, s := range []string{"node\x00-pe\x00x", "docker\x00run\x00-v=/:/h\x00i", "env\x00-S\x00sh -c x",
		"npx\x00--\x00a@b@c", "uvx\x00--from\x00x @ y", "deno\x00--\x00-", "bun\x00x\x00-", "busybox",
		"npm\x00exec\x00exec"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "\x00")
		l := Spec{Command: words[0], Args: words[1:]}
		all := l.Findings(nil)
		if diff := cmp.Diff(all, l.Findings(nil)); diff != "" {
			t.Error(diff)
		}
		marked := Spec{Command: words[0]}
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
