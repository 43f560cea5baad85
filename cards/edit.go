package cards

import (
	"context"
	_ "embed" // the description
	"fmt"
	"io"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/textfile"
)

//go:embed edit.md
var editText string

// maxEdits is the maximum number of edits in one call.
const maxEdits = 100

type editInput struct {
	Path       string          `json:"path" jsonschema:"The file."`
	OldText    string          `json:"oldText,omitempty" jsonschema:"The text to replace."`
	NewText    string          `json:"newText,omitempty" jsonschema:"The text to put in its place."`
	ReplaceAll bool            `json:"replaceAll,omitempty" jsonschema:"Replace each occurrence."`
	Edits      []editOfSeveral `json:"edits,omitempty" jsonschema:"Several edits in place of oldText and newText, made one after the other."`
}

type editOfSeveral struct {
	OldText    string `json:"oldText" jsonschema:"The text to replace."`
	NewText    string `json:"newText" jsonschema:"The text to put in its place."`
	ReplaceAll bool   `json:"replaceAll,omitempty" jsonschema:"Replace each occurrence."`
}

type editOutput struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
	// Tolerated names the differences between oldText and the file that were ignored; empty if there were none.
	Tolerated string `json:"tolerated,omitempty"`
	// Diff is a unified diff; the middle of a long diff is omitted.
	Diff string `json:"diff"`
}

// newEditCard returns the card that replaces texts in files.
func newEditCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[editInput]{
		Name: "edit", Title: "Edit file", Text: editText, Scopes: []drawbridge.Scope{ScopeFSRead, ScopeFSWrite},
		AcceptsText: true, Annotations: &Annotations{Destructive: true},
		Examples: []editInput{{Path: "main.go", OldText: "return 1\n", NewText: "return 2\n"}},
	}, func(ctx context.Context, call drawbridge.Call, in editInput) (Answer[editOutput], error) {
		edits, err := in.edits()
		if err != nil {
			return Answer[editOutput]{}, err
		}
		path, err := resolvePath(c, call.Caller, in.Path)
		if err != nil {
			return Answer[editOutput]{}, err
		}
		return b.edit(ctx, call.Caller, path, edits)
	}), nil
}

// edits returns the edits of a call: the list, or the single edit in oldText and newText.
func (in editInput) edits() ([]textfile.Edit, error) {
	single := in.OldText != "" || in.NewText != "" || in.ReplaceAll
	switch {
	case len(in.Edits) == 0:
		return []textfile.Edit{{Old: in.OldText, New: in.NewText, All: in.ReplaceAll}}, nil
	case single:
		return nil, ToolError("Give either oldText and newText, or edits.")
	case len(in.Edits) > maxEdits:
		return nil, ToolError(fmt.Sprintf("There are %d edits; %d are allowed.", len(in.Edits), maxEdits))
	}
	var edits []textfile.Edit
	for _, e := range in.Edits {
		edits = append(edits, textfile.Edit{Old: e.OldText, New: e.NewText, All: e.ReplaceAll})
	}
	return edits, nil
}

func (b fileBackend) edit(ctx context.Context, caller drawbridge.Caller, path string, edits []textfile.Edit) (answer Answer[editOutput],
	err error) {
	before, err := b.readForEdit(caller, path)
	if err != nil {
		return answer, err
	}
	result, err := textfile.Apply(before, edits)
	switch {
	case err != nil:
		return answer, ToolError(err.Error())
	case len(result.Content) > maxEditSize:
		return answer, ToolError(fmt.Sprintf("The file would have %d bytes; %d are allowed.", len(result.Content),
			maxEditSize))
	}
	// Another program may have written the file meanwhile.
	if now, err := b.readForEdit(caller, path); err != nil || now != before {
		return answer, modifiedText
	}
	if err := b.replace(ctx, caller, "edit", path, []byte(result.Content)); err != nil {
		return answer, err
	}
	out := editOutput{Path: relativePath(b.context, caller, path), Replacements: result.Replacements,
		Tolerated: result.Tolerance.String()}
	out.Diff = textfile.Diff(out.Path, before, result.Content)
	text := fmt.Sprintf("Replaced %d occurrence(s) in %s.", out.Replacements, out.Path)
	if out.Tolerated != "" {
		text += fmt.Sprintf(" oldText differed from the file in %s.", out.Tolerated)
	}
	return Answer[editOutput]{Text: text + "\n\n" + out.Diff, Value: out}, nil
}

// readForEdit returns the content of a file. It returns an error if the caller has not read the current content.
func (b fileBackend) readForEdit(caller drawbridge.Caller, path string) (string, error) {
	f, err := b.files.Open(path)
	if err != nil {
		return "", fileError("edit", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fileError("edit", path, err)
	case info.IsDir():
		return "", ToolError(path + " is a directory.")
	case info.Size() > maxEditSize:
		return "", ToolError(fmt.Sprintf("%s has %d bytes; files up to %d bytes can be edited.", path, info.Size(),
			maxEditSize))
	}
	if err := b.gate.check(caller, path, info); err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxEditSize+1))
	if err != nil {
		return "", fileError("edit", path, err)
	}
	return string(content), nil
}
