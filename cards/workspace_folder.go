package cards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/textfile"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

const (
	// importBatch is how many files are written together.
	importBatch = 200
	// progressStep is how many files are read between two notifications of the progress.
	progressStep = 50
	// maxImportFile is the maximum size of an imported file in bytes.
	maxImportFile = 8 << 20
)

type importInput struct {
	Path   string `json:"path" jsonschema:"The folder with Markdown files."`
	Parent string `json:"parent,omitempty" jsonschema:"The page below which the pages are put; absent for the top."`
}

type importOutput struct {
	Imported int `json:"imported"`
	// Known is the number of files that were imported before.
	Known int `json:"known"`
	// Skipped says why files were not imported.
	Skipped []string `json:"skipped,omitempty"`
}

type exportInput struct {
	Path   string `json:"path" jsonschema:"The folder to write. Files that exist are replaced."`
	Parent string `json:"parent,omitempty" jsonschema:"The page below which the pages are written; absent for all."`
}

type exportOutput struct {
	Exported int `json:"exported"`
}

// folderCards returns the cards that import and export a folder of Markdown files.
func folderCards(w Workspace, files fileBackend) []drawbridge.Card {
	return []drawbridge.Card{
		newWriting(Description[importInput]{Name: "workspace_import", Title: "Import a folder", NotForScripts: true,
			Scopes:      []drawbridge.Scope{ScopeFSRead, scopeImport},
			Crossing:    &drawbridge.Crossing{Write: "page", Imports: true},
			Annotations: &Annotations{Idempotent: true}, Examples: []importInput{{Path: "notes"}},
			Text: "Import the Markdown files of a folder as pages, which are drafts.\n\nEach folder becomes a page. A file that was imported before is left out, so that an import can be resumed.",
		}, func(ctx context.Context, call drawbridge.Call, in importInput) (p prepared[importOutput], err error) {
			return prepareImport(ctx, w, files, call, in)
		}),
		newShipped(Description[exportInput]{Name: "workspace_export", Title: "Export a folder", NotForScripts: true,
			Scopes:      []drawbridge.Scope{ScopeFSWrite, scopeRead},
			Annotations: &Annotations{Destructive: true, Idempotent: true}, Examples: []exportInput{{Path: "notes"}},
			Text: "Write the pages as Markdown files into a folder.\n\nAn imported file is written under its name, byte for byte if nothing was changed.",
		}, func(ctx context.Context, call drawbridge.Call, in exportInput) (answer Answer[exportOutput], err error) {
			return exportFolder(ctx, w, files, call, in)
		}),
	}
}

// An importer makes pages from files.
type importer struct {
	w     Workspace
	files fileBackend
	call  drawbridge.Call
	root  string
	// folders has the pages of the folders by their paths; "" is the page below which all are put.
	folders map[string]workspace.ID
	out     importOutput
	total   int
	// stated has what the export of the folder says about its files.
	stated map[string]statedFile
}

func prepareImport(ctx context.Context, w Workspace, files fileBackend, call drawbridge.Call, in importInput) (p prepared[importOutput], err error) {
	root, err := resolvePath(files.context, call.Caller, in.Path)
	if err != nil {
		return p, err
	}
	found, err := textfile.List(ctx, files.files, root, textfile.ListOptions{})
	if err != nil {
		return p, fileError("read", in.Path, err)
	}
	parent, err := pageID(ctx, w, call, in.Parent)
	if err != nil {
		return p, err
	}
	m := &importer{w: w, files: files, call: call, root: root, folders: map[string]workspace.ID{"": parent},
		stated: readStated(files.files, root)}
	var names []string
	for _, f := range found.Files {
		if strings.EqualFold(path.Ext(f.Path), ".md") {
			names = append(names, f.Path)
		}
	}
	m.total = len(names)
	if found.Unreadable > 0 {
		m.out.Skipped = append(m.out.Skipped, fmt.Sprintf("%d folder(s): they cannot be read", found.Unreadable))
	}
	if found.Incomplete {
		m.out.Skipped = append(m.out.Skipped, "the rest of the folder: it has too many files")
	}
	p.Batches = m.batches(ctx, names)
	p.answer = func([]workspace.Receipt) Answer[importOutput] {
		text := fmt.Sprintf("Imported %d file(s); %d were there already.", m.out.Imported, m.out.Known)
		for _, s := range m.out.Skipped {
			text += "\nnot imported: " + s
		}
		return Answer[importOutput]{Text: text, Value: m.out}
	}
	return p, nil
}

// batches returns the changes that import files: first the folders of a level, then the files. It tells the client how
// far it is.
func (m *importer) batches(ctx context.Context, names []string) iter.Seq2[[]workspace.Change, error] {
	return func(yield func([]workspace.Change, error) bool) {
		if err := m.addFolders(ctx, names, yield); err != nil {
			if !errors.Is(err, errStopped) {
				yield(nil, err)
			}
			return
		}
		var batch []workspace.Change
		taken := map[string]bool{}
		for i, name := range names {
			page, err := m.pageOf(ctx, name, taken)
			if err != nil {
				yield(nil, err)
				return
			}
			if page != nil {
				batch = append(batch, *page)
			}
			if len(batch) == importBatch || i == len(names)-1 && len(batch) > 0 {
				if !yield(batch, nil) {
					return
				}
				m.out.Imported += len(batch)
				batch = nil
			}
			if (i+1)%progressStep == 0 || i == len(names)-1 {
				m.tell(ctx, i+1)
			}
		}
	}
}

// errStopped reports that the writer of batches has stopped.
var errStopped = errors.New("the import was stopped")

// addFolders makes a page for each folder that has none, level by level.
func (m *importer) addFolders(ctx context.Context, names []string, yield func([]workspace.Change, error) bool) error {
	levels := map[int]map[string]bool{}
	deepest := 0
	for _, name := range names {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			depth := strings.Count(dir, "/")
			if levels[depth] == nil {
				levels[depth] = map[string]bool{}
			}
			levels[depth][dir], deepest = true, max(deepest, depth)
		}
	}
	for depth := range deepest + 1 {
		var batch []workspace.Change
		for dir := range levels[depth] {
			if found, err := m.findFolder(ctx, dir); err != nil || found {
				if err != nil {
					return err
				}
				continue
			}
			batch = append(batch, workspace.CreatePage{Title: path.Base(dir), Folder: true, File: dir + "/",
				Parent: m.folders[parentOf(dir)]})
		}
		if len(batch) > 0 && !yield(batch, nil) {
			return errStopped
		}
		for dir := range levels[depth] {
			if _, err := m.findFolder(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// parentOf returns the folder of a path; "" at the top.
func parentOf(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}

func (m *importer) findFolder(ctx context.Context, dir string) (bool, error) {
	v, found, err := m.w.ImportedPage(ctx, m.call, dir+"/", m.folders[parentOf(dir)])
	if found {
		m.folders[dir] = v.ID
	}
	return found, err
}

// pageOf returns the page for a file; nil if there is one already, or if the file cannot be imported.
func (m *importer) pageOf(ctx context.Context, name string, taken map[string]bool) (*workspace.CreatePage, error) {
	text, problem := m.readFile(name)
	if problem != "" {
		m.out.Skipped = append(m.out.Skipped, name+": "+problem)
		return nil, nil
	}
	parent := m.folders[parentOf(name)]
	v, found, err := m.w.ImportedPage(ctx, m.call, name, parent)
	switch {
	case err != nil:
		return nil, err
	case found && v.ProposedText() == text:
		m.out.Known++
		return nil, nil
	case found:
		m.out.Skipped = append(m.out.Skipped, fmt.Sprintf("%s: the page %s has another text", name, v.Slug))
		return nil, nil
	}
	c := workspace.CreatePage{Title: workspace.TitleOf(text, name), Parent: parent, File: name, Stated: m.stated[name].about(text)}
	if slug := workspace.SlugOf(strings.TrimSuffix(path.Base(name), path.Ext(name))); !taken[slug] {
		taken[slug] = true
		if _, err := m.w.Resolve(ctx, m.call, slug); isNotFound(err) {
			c.Slug = slug
		} else if err != nil {
			return nil, err
		}
	}
	var blocks []string
	c.Head, blocks = workspace.SplitMarkdown(text)
	for _, block := range blocks {
		if len(block) > 1<<20 {
			m.out.Skipped = append(m.out.Skipped, name+": a paragraph has more than 1 MiB")
			return nil, nil
		}
		c.Blocks = append(c.Blocks, workspace.NewBlock{Type: "markdown", Text: block})
	}
	return &c, nil
}

func isNotFound(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Code == drawbridge.NotFound
}

// readFile returns the text of a file, or why it cannot be imported.
func (m *importer) readFile(name string) (text, problem string) {
	file := filepath.Join(m.root, filepath.FromSlash(name))
	if m.isPrivate(file) {
		return "", "it is private, and its page would not be"
	}
	f, err := m.files.files.Open(file)
	if err != nil {
		return "", "it cannot be read"
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImportFile+1))
	switch {
	case err != nil:
		return "", "it cannot be read"
	case len(data) > maxImportFile:
		return "", fmt.Sprintf("it has more than %d bytes", maxImportFile)
	case !utf8.Valid(data):
		return "", "it is not UTF-8"
	case strings.ContainsRune(string(data), 0):
		return "", "it has a NUL character"
	}
	return string(data), ""
}

// isPrivate reports whether a file is private. A person decides what a person imports.
func (m *importer) isPrivate(file string) bool {
	t := m.files.trail
	return t != nil && t.Tracker != nil && m.call.Caller.Kind != drawbridge.Author &&
		t.Tracker.FileLabel(deck.RunOf(m.call.Caller), file).Confidentiality == flow.Private
}

// tell sends the progress to a client that asked for it. A client that is gone does not stop the import.
func (m *importer) tell(ctx context.Context, done int) {
	token := rawjson.Get(m.call.Params, "_meta", "progressToken")
	if token == nil || m.call.Peer == nil {
		return
	}
	_ = m.call.Peer.Notify(ctx, mcp.NoteProgress, rawjson.Apply(nil, rawjson.Put(token, "progressToken"),
		rawjson.Put(mustMarshal(done), "progress"), rawjson.Put(mustMarshal(m.total), "total"),
		rawjson.Put(rawjson.Quote(fmt.Sprintf("%d of %d files", done, m.total)), "message")))
}

func exportFolder(ctx context.Context, w Workspace, files fileBackend, call drawbridge.Call, in exportInput) (answer Answer[exportOutput], err error) {
	root, err := resolvePath(files.context, call.Caller, in.Path)
	if err != nil {
		return answer, err
	}
	parent, err := pageID(ctx, w, call, in.Parent)
	if err != nil {
		return answer, err
	}
	e := exporter{w: w, files: files.files, call: call, root: root, written: map[string]bool{}, stated: map[string]statedFile{}}
	if err := e.write(ctx, parent, root); err != nil {
		return answer, err
	}
	if err := e.writeStated(); err != nil {
		return answer, err
	}
	return Answer[exportOutput]{Text: fmt.Sprintf("Wrote %d file(s) to %s.", len(e.written), in.Path),
		Value: exportOutput{len(e.written)}}, nil
}

// An exporter writes pages to files.
type exporter struct {
	w     Workspace
	files deck.FileSystem
	call  drawbridge.Call
	root  string
	// written has the paths of the written files, and stated what is said about their sources.
	written map[string]bool
	stated  map[string]statedFile
}

// write writes the pages below a page to a directory.
func (e *exporter) write(ctx context.Context, parent workspace.ID, dir string) error {
	for offset := 0; ; {
		pages, err := e.w.Children(ctx, e.call, parent, workspace.Window{Offset: offset})
		if err != nil || len(pages) == 0 {
			return err
		}
		offset += len(pages)
		for _, p := range pages {
			if err := e.writePage(ctx, p, dir); err != nil {
				return err
			}
		}
	}
}

func (e *exporter) writePage(ctx context.Context, p workspace.Page, dir string) error {
	if p.Lifecycle == workspace.Retired {
		return nil
	}
	name := path.Base(p.File)
	if p.File == "" || !filepath.IsLocal(name) {
		name = strings.ReplaceAll(p.Slug, "/", "-")
	}
	below := filepath.Join(dir, name)
	if !p.Folder {
		below = filepath.Join(dir, strings.TrimSuffix(name, ".md"))
		v, err := e.w.Page(ctx, e.call, string(p.ID))
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name)
		if filepath.Ext(file) == "" || p.File == "" {
			file += ".md"
		}
		if e.written[file] {
			file = filepath.Join(dir, strings.ReplaceAll(p.Slug, "/", "-")+".md")
		}
		e.written[file] = true
		if err := e.files.WriteFile(file, []byte(v.Text())); err != nil {
			return fileError("write", file, err)
		}
		if err := e.state(ctx, p.ID, file, v.Text()); err != nil {
			return err
		}
	}
	return e.write(ctx, p.ID, below)
}
