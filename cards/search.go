package cards

import (
	"cmp"
	"context"
	_ "embed" // the descriptions
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/textfile"
)

//go:embed ls.md
var lsText string

//go:embed grep.md
var grepText string

//go:embed find.md
var findText string

// The limits of the cards that list and search.
const (
	maxListedEntries = 2000
	defaultHits      = 200
	maxHits          = 5000
	maxHitContext    = 20
	maxHitLine       = 500 // the maximum number of bytes shown of a line
	maxFound         = 500
	maxSearchBytes   = 64 << 10 // the maximum size of a result's text
)

type lsInput struct {
	Path       string `json:"path,omitempty" jsonschema:"The directory; the working directory if absent."`
	ShowHidden bool   `json:"showHidden,omitempty" jsonschema:"List names that begin with a dot too."`
}

type lsOutput struct {
	Path    string    `json:"path"`
	Entries []lsEntry `json:"entries"`
	// More is the number of entries that are not listed.
	More int `json:"more,omitempty"`
}

type lsEntry struct {
	Name string `json:"name"`
	// Kind is "dir", "file", "link" or "other".
	Kind string `json:"kind"`
	Size int64  `json:"size,omitempty"`
}

// newLsCard returns the card that lists directories.
func newLsCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[lsInput]{
		Name: "ls", Title: "List directory", Text: lsText, Scopes: []drawbridge.Scope{ScopeFSRead}, AcceptsText: true,
		Examples: []lsInput{{}, {Path: "src", ShowHidden: true}},
	}, func(_ context.Context, call drawbridge.Call, in lsInput) (Answer[lsOutput], error) {
		path, err := resolvePath(c, call.Caller, cmp.Or(in.Path, "."))
		if err != nil {
			return Answer[lsOutput]{}, err
		}
		return b.list(call.Caller, path, in.ShowHidden)
	}), nil
}

func (b fileBackend) list(caller drawbridge.Caller, path string, hidden bool) (answer Answer[lsOutput], err error) {
	f, err := b.files.Open(path)
	if err != nil {
		return answer, fileError("list", path, err)
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if info, err := f.Stat(); err != nil || !info.IsDir() || !ok {
		return answer, ToolError(path + " is not a directory. Read it with read.")
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return answer, fileError("list", path, err)
	}
	out := lsOutput{Path: relativePath(b.context, caller, path), Entries: []lsEntry{}}
	for _, e := range entries {
		if hidden || !strings.HasPrefix(e.Name(), ".") {
			out.Entries = append(out.Entries, newLsEntry(e))
		}
	}
	slices.SortFunc(out.Entries, func(a, b lsEntry) int {
		return cmp.Or(boolOrder(a.Kind == "dir", b.Kind == "dir"), cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	if over := len(out.Entries) - maxListedEntries; over > 0 {
		out.Entries, out.More = out.Entries[:maxListedEntries], over
	}
	b.trail.Add(deck.RunOf(caller), deck.Source{Kind: "file", Name: path})
	return Answer[lsOutput]{Text: out.text(), Value: out}, nil
}

// boolOrder compares two values for sorting; true is sorted before false.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func newLsEntry(e fs.DirEntry) lsEntry {
	one := lsEntry{Name: e.Name(), Kind: "other"}
	switch {
	case e.IsDir():
		one.Kind = "dir"
	case e.Type()&fs.ModeSymlink != 0:
		one.Kind = "link"
	case e.Type().IsRegular():
		one.Kind = "file"
		if info, err := e.Info(); err == nil {
			one.Size = info.Size()
		}
	}
	return one
}

func (o lsOutput) text() string {
	if len(o.Entries) == 0 {
		return o.Path + " is empty."
	}
	var text strings.Builder
	for _, e := range o.Entries {
		name, size := safetext.Line(e.Name), "-"
		switch e.Kind {
		case "dir":
			name += "/"
		case "file":
			size = fmt.Sprint(e.Size)
		}
		fmt.Fprintf(&text, "%-5s %10s  %s\n", e.Kind, size, name)
	}
	if o.More > 0 {
		fmt.Fprintf(&text, "… and %d more\n", o.More)
	}
	return text.String()
}

type grepInput struct {
	Pattern string `json:"pattern" jsonschema:"The regular expression."`
	Path    string `json:"path,omitempty" jsonschema:"The file or directory to search; the working directory if absent."`
	Glob    string `json:"glob,omitempty" jsonschema:"Only files with this name, such as *.go or src/**/*.ts."`
	Flags   string `json:"flags,omitempty" jsonschema:"Flags of the expression, as in JavaScript: i ignores case."`
	Literal bool   `json:"literal,omitempty" jsonschema:"The pattern is a text and no expression."`
	Context int    `json:"context,omitempty" jsonschema:"How many lines to show before and behind each match; up to 20."`
	Output  string `json:"output,omitempty" jsonschema:"lines, files or count; lines if absent."`
	Limit   int    `json:"limit,omitempty" jsonschema:"How many matching lines; 200 if absent, up to 5000."`
	Hidden  bool   `json:"hidden,omitempty" jsonschema:"Search hidden files too."`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"Search files that ignore files exclude too."`
}

type grepOutput struct {
	Matches int `json:"matches"`
	Files   int `json:"files"`
	// More is true if there are further matches.
	More bool `json:"more,omitempty"`
	// Binary, Large and Unreadable count files and directories that were not searched: binary files, files that are too
	// large, and files that could not be read.
	Binary     int `json:"binary,omitempty"`
	Large      int `json:"large,omitempty"`
	Unreadable int `json:"unreadable,omitempty"`
}

// newGrepCard returns the card that searches the content of files.
func newGrepCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[grepInput]{
		Name: "grep", Title: "Search files", Text: grepText, Scopes: []drawbridge.Scope{ScopeFSRead}, AcceptsText: true, TextForScripts: true,
		Examples: []grepInput{{Pattern: `func \w+Handler`, Glob: "*.go"}, {Pattern: "TODO", Path: "src", Context: 2}},
	}, func(ctx context.Context, call drawbridge.Call, in grepInput) (Answer[grepOutput], error) {
		path, err := resolvePath(c, call.Caller, cmp.Or(in.Path, "."))
		if err != nil {
			return Answer[grepOutput]{}, err
		}
		return b.grep(ctx, call.Caller, path, in)
	}), nil
}

// pattern returns the search pattern and the search options of a call.
func (in grepInput) pattern() (p *textfile.Pattern, o textfile.GrepOptions, err error) {
	o = textfile.GrepOptions{MaxLines: cmp.Or(in.Limit, defaultHits), Context: in.Context}
	switch {
	case in.Pattern == "":
		return nil, o, ToolError("pattern is empty.")
	case o.MaxLines < 1 || o.MaxLines > maxHits:
		return nil, o, ToolError(fmt.Sprintf("limit must be from 1 to %d.", maxHits))
	case o.Context < 0 || o.Context > maxHitContext:
		return nil, o, ToolError(fmt.Sprintf("context must be from 0 to %d.", maxHitContext))
	}
	switch in.Output {
	case "", "lines":
	case "files":
		o.FilesOnly = true
	case "count":
		o.CountOnly = true
	default:
		return nil, o, ToolError("output must be lines, files or count.")
	}
	if in.Literal {
		return textfile.LiteralPattern(in.Pattern, strings.Contains(in.Flags, "i")), o, nil
	}
	if p, err = textfile.CompilePattern(in.Pattern, in.Flags); err != nil {
		return nil, o, ToolError("Could not compile the search pattern: " + err.Error())
	}
	return p, o, nil
}

func (b fileBackend) grep(ctx context.Context, caller drawbridge.Caller, path string, in grepInput) (
	answer Answer[grepOutput], err error) {
	p, o, err := in.pattern()
	if err != nil {
		return answer, err
	}
	root, listing, err := b.listFiles(ctx, caller, path, in.Glob, textfile.ListOptions{Hidden: in.Hidden, NoIgnore: in.Ignored})
	if err != nil {
		return answer, err
	}
	found, err := textfile.Grep(ctx, b.files, root, listing.Files, p, o)
	if err != nil {
		return answer, err
	}
	out := grepOutput{Matches: found.Matches, Files: len(found.Files), More: found.More, Binary: found.Binary,
		Large: found.Large, Unreadable: found.Unreadable + listing.Unreadable}
	var text strings.Builder
	for _, f := range found.Files {
		shown := relativePath(b.context, caller, filepath.Join(root, filepath.FromSlash(f.Path)))
		writeMatches(&text, safetext.Line(shown), f, o)
		b.noteSource(ctx, caller, filepath.Join(root, filepath.FromSlash(f.Path)))
	}
	lines := clampLines(text.String())
	out.More = out.More || len(lines) < text.Len()
	return Answer[grepOutput]{Text: lines + out.notes(listing.Incomplete), Value: out, Plain: &lines}, nil
}

// writeMatches writes the matches of a file.
func writeMatches(w *strings.Builder, name string, f textfile.FileMatch, o textfile.GrepOptions) {
	switch {
	case o.FilesOnly:
		fmt.Fprintf(w, "%s\n", name)
		return
	case o.CountOnly:
		fmt.Fprintf(w, "%s: %d\n", name, f.Count)
		return
	}
	for _, l := range f.Lines {
		mark := "-"
		if l.Match {
			mark = ":"
		}
		fmt.Fprintf(w, "%s%s%d%s %s\n", name, mark, l.Number, mark, safetext.Truncate(strings.ToValidUTF8(l.Text, "\ufffd"),
			maxHitLine, safetext.Bytes, "…"))
	}
}

// clampLines returns the first whole lines of a text, at most maxSearchBytes bytes.
func clampLines(text string) string {
	if len(text) <= maxSearchBytes {
		return text
	}
	return text[:strings.LastIndexByte(text[:maxSearchBytes], '\n')+1]
}

// notes returns sentences about omitted matches and files that were not searched.
func (o grepOutput) notes(incomplete bool) string {
	var notes []string
	if o.Matches == 0 {
		notes = append(notes, "No line matches.")
	}
	if o.More {
		notes = append(notes, "There are more matches: narrow the search, or raise limit.")
	}
	for _, skipped := range []struct {
		count int
		what  string
	}{
		{o.Binary, "binary"}, {o.Large, "over 2 MiB"}, {o.Unreadable, "unreadable"},
	} {
		if skipped.count > 0 {
			notes = append(notes, fmt.Sprintf("Not searched, because %s: %d.", skipped.what, skipped.count))
		}
	}
	if incomplete {
		notes = append(notes, "The tree is too large and was not searched whole.")
	}
	return strings.Join(notes, "\n")
}

// listFiles lists the files below path whose names match glob; an empty glob matches all. The listed paths are relative
// to root. path may also be a single file; root is then its directory. Protected files are omitted.
func (b fileBackend) listFiles(ctx context.Context, caller drawbridge.Caller, path, glob string,
	o textfile.ListOptions) (root string, l textfile.Listing, err error) {
	if b.protected != nil && caller.Kind != drawbridge.Author {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", l, fileError("search", path, err)
		}
		o.Skip = func(below string) bool { return b.protected(real + strings.TrimPrefix(below, path)) }
	}
	info, err := b.stat(path)
	switch {
	case err != nil:
		return "", l, fileError("search", path, err)
	case !info.IsDir():
		return filepath.Dir(path), textfile.Listing{Files: []textfile.File{{Path: filepath.Base(path)}}}, nil
	}
	if l, err = textfile.List(ctx, b.files, path, o); err != nil {
		return "", l, fileError("search", path, err)
	}
	if glob != "" {
		matches, err := textfile.CompileName(glob)
		if err != nil {
			return "", l, ToolError("Could not use glob: " + err.Error() + ".")
		}
		l.Files = slices.DeleteFunc(l.Files, func(f textfile.File) bool { return !matches(f) })
	}
	return path, l, nil
}

type findInput struct {
	Query   string `json:"query" jsonschema:"A part of the name, or a glob."`
	Path    string `json:"path,omitempty" jsonschema:"The directory to search; the working directory if absent."`
	Type    string `json:"type,omitempty" jsonschema:"file or dir; both if absent."`
	Hidden  bool   `json:"hidden,omitempty" jsonschema:"Find hidden files too."`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"Find files that ignore files exclude too."`
}

type findOutput struct {
	Paths []string `json:"paths"`
	// More is the number of further paths.
	More int `json:"more,omitempty"`
}

// newFindCard returns the card that finds files by name.
func newFindCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[findInput]{
		Name: "find", Title: "Find files", Text: findText, Scopes: []drawbridge.Scope{ScopeFSRead}, AcceptsText: true,
		Examples: []findInput{{Query: "*.md"}, {Query: "config", Path: "src", Type: "file"}},
	}, func(ctx context.Context, call drawbridge.Call, in findInput) (answer Answer[findOutput], err error) {
		path, err := resolvePath(c, call.Caller, cmp.Or(in.Path, "."))
		if err != nil {
			return answer, err
		}
		switch in.Type {
		case "", "file", "dir":
		default:
			return answer, ToolError("type must be file or dir.")
		}
		if in.Query == "" {
			return answer, ToolError("query is empty.")
		}
		root, l, err := b.listFiles(ctx, call.Caller, path, in.Query, textfile.ListOptions{Hidden: in.Hidden, NoIgnore: in.Ignored,
			Dirs: in.Type != "file"})
		if err != nil {
			return answer, err
		}
		if in.Type == "dir" {
			l.Files = slices.DeleteFunc(l.Files, func(f textfile.File) bool { return !f.Dir })
		}
		return newFindAnswer(relativePath(c, call.Caller, root), l), nil
	}), nil
}

func newFindAnswer(root string, l textfile.Listing) (answer Answer[findOutput]) {
	out := findOutput{Paths: []string{}}
	if over := len(l.Files) - maxFound; over > 0 {
		l.Files, out.More = l.Files[:maxFound], over
	}
	var text strings.Builder
	for _, f := range l.Files {
		path := f.Path
		if root != "." {
			path = filepath.ToSlash(root) + "/" + path
		}
		if f.Dir {
			path += "/"
		}
		out.Paths = append(out.Paths, path)
		fmt.Fprintln(&text, safetext.Line(path))
	}
	switch {
	case len(l.Files) == 0:
		text.WriteString("Nothing has such a name.\n")
	case out.More > 0:
		fmt.Fprintf(&text, "… and %d more: narrow the search.\n", out.More)
	}
	if l.Incomplete {
		text.WriteString("The tree is too large and was not searched whole.\n")
	}
	return Answer[findOutput]{Text: text.String(), Value: out}
}
