package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// TestTreesArePrintable prints trees whose every text has an escape sequence, a line break and a character that reverses
// the direction of the text.
func TestTreesArePrintable(t *testing.T) {
	const evil = "x\x1b[2J\x1b]0;owned\x07\n\u202ey"
	stamp := workspace.Stamp{Revision: evil, Origin: evil, Lifecycle: evil, By: evil, Thread: evil, Run: evil, At: time.Now()}
	written := &workspace.Written{Stamp: stamp, Actor: evil, Tool: evil, Call: evil, Prompt: evil}
	root := &workspace.Why{Kind: "page", Name: evil, Page: evil, Digest: evil, Written: written, Shown: true, LeftOut: 2}
	for _, kind := range []string{"block", "memory", workspace.FileSource, workspace.WebSource, workspace.ResultSource, workspace.MoreSources,
		workspace.Statement, evil} {
		root.Sources = append(root.Sources, &workspace.Why{Kind: kind, Name: evil, Page: evil, Server: evil, Digest: evil, Call: evil, State: evil,
			Written: written})
	}
	change := &undo.Written{Tool: evil, Path: evil, Call: evil, Thread: evil, Run: evil, Digest: evil, Time: time.Now()}
	call := &admin.CallWhy{ID: evil, Recorded: true, Tool: evil, Server: evil, Caller: evil, Client: evil, Thread: evil, Run: evil,
		Prompt: evil, Verdict: evil, Rule: evil, Reason: evil, Approval: evil, By: evil, Outcome: evil, Arguments: evil,
		Files: []*undo.Written{change}, Writes: []workspace.CallWrite{{Change: evil, Entity: evil, Page: evil}}, MoreReads: 3}
	for _, kind := range []string{"file", "page", "result", "entity", "call"} {
		call.Reads = append(call.Reads, admin.Read{Kind: kind, Name: evil, Server: evil, Digest: evil, Call: evil})
	}
	whole := &admin.FileWhy{Blame: undo.Blame{Path: evil, Digest: evil, Last: change, Ranges: []undo.Range{{First: 1, Last: 1, By: change},
		{First: 2, Last: 3, After: change}, {First: 4, Last: 4}}}}
	line := *whole
	line.Line, line.Range, line.Writer = 1, &whole.Ranges[0], call
	byHand := admin.FileWhy{Blame: undo.Blame{Path: evil, Digest: evil, Last: change, ChangedAfter: change}}
	a := &app{Process: Process{Env: func(string) (string, bool) { return "", false }}}
	for name, tree := range map[string]treeNode{"workspace": whyTree(root), "call": callTree(call, evil), "file": a.fileTree(whole),
		"line": a.fileTree(&line), "by hand": a.fileTree(&byHand)} {
		var out bytes.Buffer
		if err := printTree(&out, tree); err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(out.String()) {
			if strings.ContainsAny(strings.TrimSuffix(text, "\n"), "\x1b\x07\n\u202e") {
				t.Errorf("%s prints %q", name, text)
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines != countLines(tree) {
			t.Errorf("%s has %d lines, want %d:\n%s", name, lines, countLines(tree), out.String())
		}
	}
	if got := strings.Join(admin.RunTrailers(whole), ""); strings.ContainsAny(got, "\x1b\n\u202e") {
		t.Errorf("the trailer is %q", got)
	}
}

// countLines returns the number of lines of a tree.
func countLines(n treeNode) int {
	lines := 1 + len(n.details)
	for _, below := range n.below {
		lines += countLines(below)
	}
	return lines
}

// TestTreesFitTheTerminal prints a tree on terminals: what is too wide continues at the same place of the tree.
func TestTreesFitTheTerminal(t *testing.T) {
	root := treeNode{line: "page Frogs (frogs)", details: []string{"candidate, agent-produced by ann with page_create"},
		below: []treeNode{
			{line: "memory workspace/frogs and more words",
				details: []string{"sha256 0123456789012345678901234567890123456789"}},
			{line: "result of notes__read, server 名前名前名前名前"}}}
	for width, want := range map[int]string{
		0: `page Frogs (frogs)
│   candidate, agent-produced by ann with page_create
├── memory workspace/frogs and more words
│       sha256 0123456789012345678901234567890123456789
└── result of notes__read, server 名前名前名前名前
`,
		40: `page Frogs (frogs)
│   candidate, agent-produced by ann
│     with page_create
├── memory workspace/frogs and more
│       words
│       sha256
│         0123456789012345678901234567890123456789
└── result of notes__read, server
        名前名前名前名前
`} {
		p := treePrinter{width: width}
		p.add(root, "", "")
		if got := p.text.String(); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
