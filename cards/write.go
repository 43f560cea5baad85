package cards

import (
	"context"
	_ "embed" // the description
	"errors"
	"fmt"
	"io/fs"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

//go:embed write.md
var writeText string

type writeInput struct {
	Path    string `json:"path" jsonschema:"The file."`
	Content string `json:"content" jsonschema:"The whole new content."`
}

type writeOutput struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
}

// newWriteCard returns the card that writes whole files.
func newWriteCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[writeInput]{
		Name: "write", Title: "Write file", Text: writeText, Scopes: []drawbridge.Scope{ScopeFSWrite}, AcceptsText: true,
		Annotations: &Annotations{Destructive: true, Idempotent: true},
		Examples:    []writeInput{{Path: "notes.txt", Content: "first line\n"}},
	}, func(ctx context.Context, call drawbridge.Call, in writeInput) (Answer[writeOutput], error) {
		path, err := resolvePath(c, call.Caller, in.Path)
		if err != nil {
			return Answer[writeOutput]{}, err
		}
		return b.write(ctx, call.Caller, path, in.Content)
	}), nil
}

func (b fileBackend) write(ctx context.Context, caller drawbridge.Caller, path, content string) (answer Answer[writeOutput], err error) {
	out := writeOutput{Path: relativePath(b.context, caller, path), Bytes: len(content)}
	if len(content) > maxEditSize {
		return answer, ToolError(fmt.Sprintf("The content has %d bytes; %d are allowed.", len(content), maxEditSize))
	}
	info, err := b.stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Created = true
	case err != nil:
		return answer, fileError("write", path, err)
	case info.IsDir():
		return answer, ToolError(path + " is a directory.")
	default:
		if err := b.gate.check(caller, path, info); err != nil {
			return answer, err
		}
	}
	if err := b.replace(ctx, caller, "write", path, []byte(content)); err != nil {
		return answer, err
	}
	return Answer[writeOutput]{Text: fmt.Sprintf("Saved %d byte(s) to %s.", len(content), out.Path), Value: out}, nil
}

// stat returns the FileInfo of a file. The error is fs.ErrNotExist if the file does not exist.
func (b fileBackend) stat(path string) (fs.FileInfo, error) {
	f, err := b.files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// replace writes a file for a tool. It first stores the earlier content in the undo log. If that fails, it does not
// write the file.
func (b fileBackend) replace(ctx context.Context, caller drawbridge.Caller, tool, path string, data []byte) error {
	done := func([]byte) error { return nil }
	if b.undo != nil {
		var err error
		if done, err = b.undo.Before(FileChange{deck.RunOf(caller), tool, path, caller, audit.CallID(ctx)}); err != nil {
			return fmt.Errorf("keep the content of %s: %w", path, err)
		}
	}
	if err := b.files.WriteFile(path, data); err != nil {
		return fileError("write", path, err)
	}
	info, err := b.stat(path)
	if err != nil {
		info = nil // note then removes the file from the gate
	}
	b.gate.note(caller, path, info)
	return done(data)
}
