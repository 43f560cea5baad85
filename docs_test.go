package drawbridge_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// methods look like paths of ours and are methods of MCP.
var methods = []string{"server/discover"}

func TestGuidesAreShort(t *testing.T) {
	for name, most := range map[string]int{"README.md": 150, "ARCHITECTURE.md": 250} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if lines := strings.Count(string(text), "\n"); lines >= most {
			t.Errorf("%s has %d lines, want fewer than %d", name, lines, most)
		}
	}
}

// TestGuidesNameWhatExists holds the guides to the tree: every path, every link and every make target is there.
func TestGuidesNameWhatExists(t *testing.T) {
	targets := makeTargets(t)
	for _, guide := range guides(t) {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Error(err)
			continue
		}
		said := readGuide(string(text))
		for _, link := range said.links {
			if _, err := os.Stat(filepath.Join(filepath.Dir(guide), link)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", guide, link)
			}
		}
		for _, p := range said.paths(rootEntries(t)) {
			if found, err := filepath.Glob(p); err != nil || len(found) == 0 {
				t.Errorf("%s: there is no %s", guide, p)
			}
		}
		for _, target := range said.makeTargets() {
			if !slices.Contains(targets, target) {
				t.Errorf("%s: make has no target %s", guide, target)
			}
		}
	}
}

// TestReadGuide shows what counts as a claim.
func TestReadGuide(t *testing.T) {
	said := readGuide(
		"See [the map](docs/map.md#top), [this](https://example.org) and `internal/transport`, `tools/list`,\n" +
			"`server/discover`, `doc.go`, `drawbridge serve --http ADDR`, `make conform`.\n\n" +
			"```console\n$ make bench COUNT=3 && go run ./internal/tools/shape | head\nmake nothing of this\n```\n" +
			"```sh\nmake\n# a comment\nbin/drawbridge tools list > out\n```\n" +
			"```go\nimport \"make/up\"\n```\n")
	type claims struct{ Links, Paths, Targets, Commands []string }
	got := claims{said.links, said.paths([]string{"internal", "server", "doc.go"}), said.makeTargets(), nil}
	for _, words := range said.of("drawbridge") {
		got.Commands = append(got.Commands, strings.Join(words, " "))
	}
	want := claims{
		Links:    []string{"docs/map.md"},
		Paths:    []string{"internal/transport", "doc.go", "internal/tools/shape"},
		Targets:  []string{"conform", "bench"},
		Commands: []string{"serve --http ADDR", "tools list"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestGuidesShowCommandsThatExist follows every "drawbridge ..." of the guides down the tree of commands.
func TestGuidesShowCommandsThatExist(t *testing.T) {
	for _, guide := range guides(t) {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Error(err)
			continue
		}
		said := readGuide(string(text))
		for _, words := range said.of("drawbridge") {
			if wrong := unknownWord(commands(), words); wrong != "" {
				t.Errorf("%s: drawbridge %s: there is no %s", guide, strings.Join(words, " "), wrong)
			}
		}
	}
}

func TestUnknownWord(t *testing.T) {
	for line, want := range map[string]string{
		"serve --http 127.0.0.1:0 --mcp a.json": "",
		"--naming bare serve":                   "",
		"serve [--http ADDR] [--mcp PATH]…":     "",
		"mcp list --json":                       "",
		"tools call fs__read path=x --json":     "",
		"completion bash":                       "",
		"-p what is here":                       "",
		"serve --htp 127.0.0.1:0":               "--htp",
		"mcp lst":                               "lst",
		"conect cursor":                         "conect",
	} {
		if got := unknownWord(commands(), strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func guides(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/tasks/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d guides, %v", pattern, len(found), err)
		}
		all = append(all, found...)
	}
	return all
}

// A guide is what a Markdown text claims: where its links lead, what it puts in code quotes, which commands it shows.
type guide struct {
	links, quotes []string
	commands      [][]string
}

var (
	linkTo   = regexp.MustCompile(`\]\(([^)#\s]+)`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	pathlike = regexp.MustCompile(`^(\./)?[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)*/?$`)
)

// readGuide reads a Markdown text. Of a fenced block it reads shell scripts, and of a transcript what follows "$ ".
func readGuide(text string) guide {
	var g guide
	var fence string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		info, mark := strings.CutPrefix(line, "```")
		switch {
		case mark && fence == "":
			fence = "plain"
			if info != "" {
				fence = info
			}
		case mark:
			fence = ""
		case fence == "console":
			if typed, ok := strings.CutPrefix(line, "$ "); ok {
				g.shell(typed)
			}
		case fence == "sh":
			g.shell(line)
		case fence == "":
			g.prose(line)
		}
	}
	return g
}

func (g *guide) prose(line string) {
	for _, m := range linkTo.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(m[1], "://") {
			g.links = append(g.links, m[1])
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		g.quotes = append(g.quotes, m[1])
		g.shell(m[1])
	}
}

// shell keeps each simple command of a line, without redirections and comments.
func (g *guide) shell(line string) {
	var words []string
	for _, word := range append(strings.Fields(line), ";") {
		word, last := strings.CutSuffix(word, ";")
		if word != "" && !strings.ContainsAny(word[:1], "|&<>#") {
			words = append(words, word)
			if !last {
				continue
			}
		}
		if len(words) > 0 {
			g.commands = append(g.commands, words)
		}
		if words = nil; word != "" && strings.ContainsAny(word[:1], "<>#") {
			return
		}
	}
}

// of returns the words after each use of a program.
func (g *guide) of(program string) [][]string {
	var uses [][]string
	for _, words := range g.commands {
		if path.Base(words[0]) == program && len(words) > 1 {
			uses = append(uses, words[1:])
		}
	}
	return uses
}

func (g *guide) makeTargets() []string {
	var targets []string
	for _, words := range g.of("make") {
		for _, word := range words {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				targets = append(targets, word)
			}
		}
	}
	return targets
}

// paths returns the quotes that name something of ours, by how they begin or, for a file at the root, by how they end;
// and what commands of Go are pointed at.
func (g *guide) paths(root []string) []string {
	var paths []string
	add := func(p string) {
		p = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/..."), "/")
		first, _, _ := strings.Cut(p, "/")
		ours := slices.Contains(root, first) || p == first &&
			slices.Contains([]string{".go", ".md", ".mod"}, path.Ext(p))
		if ours && pathlike.MatchString(p) && !slices.Contains(methods, p) {
			paths = append(paths, p)
		}
	}
	for _, quote := range g.quotes {
		add(quote)
	}
	for _, words := range g.of("go") {
		for _, word := range words {
			if strings.HasPrefix(word, "./") {
				add(word)
			}
		}
	}
	return paths
}

// rootEntries are the files and folders that a path of ours begins with.
func rootEntries(t *testing.T) []string {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS("."), ".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != "bin" && e.Name() != ".cache" {
			names = append(names, e.Name())
		}
	}
	return names
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, m[1])
	}
	return targets
}

func commands() *cobra.Command {
	root := cli.NewRootCommand(cli.Process{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	return root
}

// unknownWord returns the first subcommand or flag of words that cmd does not have, or "".
func unknownWord(cmd *cobra.Command, words []string) string {
	value := false
	for _, word := range words {
		word = strings.Trim(word, "[]…")
		switch {
		case value:
			value = false
		case word == "--":
			return ""
		case strings.HasPrefix(word, "-"):
			name, _, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
			flag := findFlag(cmd, name)
			if flag == nil {
				return word
			}
			if flag.Name == "print" && !cmd.HasParent() {
				return "" // the other words are a prompt
			}
			value = !joined && flag.NoOptDefVal == ""
		case cmd.HasSubCommands():
			next := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool {
				return c.Name() == word ||
					c.HasAlias(word)
			})
			if next < 0 {
				return word
			}
			cmd = cmd.Commands()[next]
		}
	}
	return ""
}

func findFlag(cmd *cobra.Command, name string) *pflag.Flag {
	cmd.InitDefaultHelpFlag()
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags(), cmd.InheritedFlags()} {
		if flag := set.Lookup(name); flag != nil {
			return flag
		}
		if len(name) == 1 {
			if flag := set.ShorthandLookup(name); flag != nil {
				return flag
			}
		}
	}
	return nil
}

// TestREADMEShowsTheExample holds that the README's Go code is a whole program that compiles: examples/embed.
func TestREADMEShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("examples/embed/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	shown, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("README.md has no Go code")
	}
	if !strings.HasSuffix(string(example), "\n"+shown) {
		t.Errorf("README.md shows code that is not examples/embed/main.go:\n%s", shown)
	}
}
