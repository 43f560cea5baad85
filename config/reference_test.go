package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReferenceIsCurrent holds docs/configuration.md to the tables that files are read by. With -update it writes it.
func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "configuration.md")
	got := reference()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, path+" (write it again with go test ./config -run Reference -update)", string(want), got)
}

const referenceTop = `# Configuration

This page is generated from the tables that Drawbridge uses to read files: ` + "`go test ./config -run Reference -update`" + `.

## Where servers are written

The first valid definition of a name is used; later ones are shown as shadowed. An invalid definition shadows nothing.

| file | owner |
|---|---|
| ` + "`.drawbridge/mcp.json`, `.drawbridge/drawbridge.toml`" + ` in the working directory | the project: its servers wait for approval |
| ` + "`~/.config/drawbridge/mcp.json`, `drawbridge.toml`" + ` (` + "`$XDG_CONFIG_HOME`" + ` changes the directory) | you |
| ` + "`~/.drawbridge/agent/mcp.json`, `mcp-servers.json`" + ` | you; older locations |
| the files, or directories to search, of ` + "`--mcp`" + ` | you; they replace all of the above |

JSON may have comments and trailing commas. Servers are under ` + "`mcpServers` or `servers`" + `, as an object by name or as an array;
in TOML under ` + "`[[mcp.servers]]`" + `. ` + "`\"disabledServers\": [\"name\"]`" + ` in one of your own JSON files turns servers off, whichever file they are in.

A server of a project does not start before a person approves it. It needs approval again when its definition or its
program file changes; see [confinement](confinement.md).
`

const referenceAuth = `
### Signing in

Drawbridge finds out how to sign in at a server. Members of ` + "`auth`" + ` take precedence over the discovered values, and over those of
` + "`oauth`" + `, an older name for ` + "`auth`" + `. Names may be written in both ways: ` + "`token_url` and `tokenUrl`" + `.
`

const referenceValues = `
## Values

In texts, ` + "`${NAME}`" + ` is replaced by the environment variable NAME. ` + "`${NAME:-text}`" + ` is replaced by text if NAME is not set. A variable that is
not set and has no default stays as written, and is reported. ` + "`${env:NAME}` is the same as `${NAME}`, and `$${` is a literal `${`" + `.

A complete value of ` + "`env` or `headers`" + ` may also be the name of a set variable, or ` + "`!`" + ` and a command, whose output is the value.
` + "`${:-text}`" + ` is always the literal text. The content of a variable is never read as a command, a name or a reference.

### References

A secret need not be in the file. A value of ` + "`env` or `headers`" + `, and each member or setting below whose text says "see References" or "see Values", may
contain references:

| reference | value |
|---|---|
| ` + "`${file:PATH}`" + ` | the content of a file, without the line end; ` + "`~/`" + ` is your home, and a relative path starts at the directory of the file with the row |
| ` + "`${keychain:NAME}`" + ` | the secret that you stored under that name |
| ` + "`${command:CMD}`, or `!CMD`" + ` as the complete value | the output of a shell command, without surrounding white space |

A reference ends at the first ` + "`}`" + `, so write a command that contains one after ` + "`!`" + `. References are resolved when Drawbridge starts or
connects to the server, not before, and the result is inserted unchanged. If a reference cannot be resolved, the value is left out, and ` + "`drawbridge mcp list`" + ` reports it.
` + "`drawbridge doctor`" + ` checks the references to files and to the keychain before any server starts. It runs no command. In ` + "`args`, `command`, `cwd` or `url`" + `, a
reference is an error that disables the row: every process of the machine can read a program's arguments.
`

const referenceOthers = `
## Other programs' files

Servers in the project files of these programs are treated like the project's servers, after those in Drawbridge's own files and in this order. Servers in
your own files of these programs are only used by ` + "`drawbridge import`" + `. PLUGIN is the directory of each plugin that is installed in Claude Code for you or
for this project and not turned off in ` + "`~/.claude/settings.json`" + `; its servers wait for approval too, and ` + "`${CLAUDE_PLUGIN_ROOT}`" + ` in them is that directory.
The files of many programs at the root of a project, ` + "`mcp.json` and `.mcp.json`" + `, come last.

| program | name | in a project | your own |
|---|---|---|---|
`

// reference writes the page.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceTop)
	b.WriteString("\n## A server\n")
	table(&b, "server", "member")
	b.WriteString(referenceAuth)
	table(&b, "auth", "member")
	b.WriteString(referenceValues)
	b.WriteString("\n## Settings\n\nSettings are read from your own `drawbridge.toml` only. A time is `\"30s\"`, or a number of milliseconds;\n" +
		"where the table says seconds, a number is a number of seconds.\n")
	for _, section := range settingSections() {
		fmt.Fprintf(&b, "\n### [%s]\n", section)
		table(&b, section, "setting")
	}
	b.WriteString("\n### Other names\n\nSome settings may have the names that other programs use:\n\n| name | setting |\n|---|---|\n")
	for _, n := range otherSettingNames {
		fmt.Fprintf(&b, "| `%s` in `[%s]` | `%s` in `[%s]` |\n", n.other.name, n.other.section, n.ours.name, n.ours.section)
	}
	b.WriteString(referenceOthers)
	for _, p := range Providers()[1:] {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", p.Title, p.Name, code(p.ProjectFiles), code(p.UserFiles))
	}
	return b.String()
}

// settingSections returns the sections of all settings, by name.
func settingSections() []string {
	sections := map[string]bool{}
	for _, f := range DocumentedFields() {
		sections[f.Section] = f.Section != "server" && f.Section != "auth"
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(sections)), func(name string) bool { return !sections[name] })
}

func table(b *strings.Builder, section, what string) {
	fmt.Fprintf(b, "\n| %s | value | default | what it does |\n|---|---|---|---|\n", what)
	for _, f := range DocumentedFields() {
		if f.Section == section {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, f.Default, f.Doc)
		}
	}
}

// code joins paths as code.
func code(paths []string) string {
	quoted := make([]string, 0, len(paths))
	for _, p := range paths {
		quoted = append(quoted, "`"+p+"`")
	}
	return strings.Join(quoted, ", ")
}
