package cards

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

const (
	// statedName is the file in an exported folder that says from what the pages were made. An import of the folder
	// reads it. It is hidden, so that it is not taken for a page.
	statedName = ".drawbridge-sources.json"
	// statedFormat is the version of its format.
	statedFormat = 1
	// maxStatedFile is its maximum size in bytes.
	maxStatedFile = 64 << 20
)

// A statedFolder is the content of the file. Pages are the files by their paths in the folder, with slashes.
type statedFolder struct {
	Format int                   `json:"format"`
	Pages  map[string]statedFile `json:"pages"`
}

// A statedFile says from what a page was made, whose file has the given SHA-256. Why is a workspace.Why.
type statedFile struct {
	SHA256 string          `json:"sha256"`
	Why    json.RawMessage `json:"why"`
}

// about returns the statement, if it is about this text and valid.
func (f statedFile) about(text string) string {
	if len(f.Why) == 0 || f.SHA256 != workspace.Digest(text) {
		return ""
	}
	if _, err := workspace.ParseStated(f.Why); err != nil {
		return ""
	}
	return string(f.Why)
}

// readStated returns what the export of a folder says about its files. It returns nothing if the folder was not
// exported, or if the file is damaged: the pages can be imported without it.
func readStated(files deck.FileSystem, root string) map[string]statedFile {
	f, err := files.Open(filepath.Join(root, statedName))
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxStatedFile {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxStatedFile))
	var all statedFolder
	if err != nil || json.Unmarshal(data, &all) != nil || all.Format != statedFormat {
		return nil
	}
	return all.Pages
}

// state notes from what the page of a written file was made, unless a person wrote it, or imported it from nothing that
// is known. A tree that is too large is noted with fewer levels, or not at all.
func (e *exporter) state(ctx context.Context, page workspace.ID, file, text string) error {
	name, err := filepath.Rel(e.root, file)
	if err != nil {
		return err
	}
	for _, o := range []workspace.WhyOptions{{}, {Depth: 3, Width: 20}} {
		why, err := e.w.Why(ctx, e.call, string(page), o)
		if err != nil {
			return err
		}
		own := why.Written == nil || why.Written.Origin == workspace.Authored || why.Written.Origin == workspace.Imported
		if own && len(why.Sources) == 0 {
			return nil
		}
		tree, err := json.Marshal(why)
		if err != nil {
			return err
		}
		if _, err := workspace.ParseStated(tree); err == nil {
			e.stated[filepath.ToSlash(name)] = statedFile{workspace.Digest(text), tree}
			return nil
		}
	}
	return nil
}

// writeStated writes the file with the statements about sources, unless there are none.
func (e *exporter) writeStated() error {
	if len(e.stated) == 0 {
		return nil
	}
	data, err := json.MarshalIndent(statedFolder{statedFormat, e.stated}, "", " ")
	if err != nil {
		return err
	}
	file := filepath.Join(e.root, statedName)
	if err := e.files.WriteFile(file, append(data, '\n')); err != nil {
		return fileError("write", file, err)
	}
	return nil
}
