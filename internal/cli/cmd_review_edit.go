package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// isEditable reports whether a person can write their own version of an entry: it has texts of a page.
func isEditable(e reviewEntry) bool {
	for _, c := range e.contents {
		if c.Kind == workspace.BlockKind {
			return true
		}
	}
	return false
}

// A proposedBlock is a block of a page with the text that waits.
type proposedBlock struct {
	workspace.Block
	proposed workspace.Revision
}

// edit opens the editor with the text of an entry, and writes the person's version in its place. Of a write that made a
// page, the parts that the person left as they are become accepted.
func (v *reviewer) edit(ctx context.Context, e reviewEntry) error {
	page := e.contents[0].Page
	p, err := callWorkspace[pageResult](ctx, v.workspaceRequest, "page_read", toolArguments{"page": string(page)})
	if err != nil {
		return err
	}
	var blocks []proposedBlock
	text := ""
	for _, b := range p.Page.Blocks {
		for _, c := range e.contents {
			if c.Entity == b.ID {
				blocks = append(blocks, proposedBlock{b, c})
				text += c.Text
			}
		}
	}
	edited, err := v.a.editText(ctx, text)
	switch {
	case err != nil:
		return err
	case edited == text:
		return errors.New("the text was not changed")
	case strings.TrimSpace(edited) == "":
		return errors.New("the text is empty: reject it instead")
	}
	if len(e.contents) == 1 {
		return v.writeBlock(ctx, page, blocks[0], edited)
	}
	return v.writePage(ctx, page, e.revision, blocks, edited)
}

// writeBlock writes the person's version of one block, and rejects the text that waits for its place.
func (v *reviewer) writeBlock(ctx context.Context, page workspace.ID, b proposedBlock, text string) error {
	if _, err := v.call(ctx, "page_update", toolArguments{"page": string(page), "slot": b.Slot, "text": text,
		"base": string(b.Revision)}); err != nil {
		return err
	}
	if b.proposed.State != "waiting" {
		return nil // the version has replaced it
	}
	_, err := v.call(ctx, "review_reject", toolArguments{"revision": string(b.proposed.Revision)})
	return err
}

// writePage writes the person's version of the blocks of a new page: changed ones are written, further ones are added at
// the end, and missing ones are retired.
func (v *reviewer) writePage(ctx context.Context, page, revision workspace.ID, blocks []proposedBlock, text string) error {
	head, texts := workspace.SplitMarkdown(text)
	if head != "" {
		return errors.New("front matter cannot be added here")
	}
	for i, b := range blocks[:min(len(blocks), len(texts))] {
		if texts[i] == b.proposed.Text {
			continue
		}
		if _, err := v.call(ctx, "page_update", toolArguments{"page": string(page), "slot": b.Slot, "text": texts[i],
			"base": string(b.Revision)}); err != nil {
			return err
		}
	}
	for i := len(texts) - 1; i >= len(blocks); i-- {
		if _, err := v.call(ctx, "page_update", toolArguments{"page": string(page), "text": texts[i],
			"after": blocks[len(blocks)-1].Slot}); err != nil {
			return err
		}
	}
	if _, err := v.call(ctx, "review_promote", toolArguments{"revision": string(revision)}); err != nil {
		return err
	}
	for _, b := range blocks[min(len(blocks), len(texts)):] {
		if _, err := v.call(ctx, "page_retire", toolArguments{"entity": string(b.ID)}); err != nil {
			return err
		}
	}
	return nil
}

// maxEdited is the maximum size of an edited text in bytes.
const maxEdited = 8 << 20

// editText opens the person's editor with a text, and returns the text that they saved.
func (a *app) editText(ctx context.Context, text string) (string, error) {
	editor, _ := a.Env("VISUAL")
	if editor == "" {
		editor, _ = a.Env("EDITOR")
	}
	words, err := admin.SplitWords(editor)
	if err != nil || len(words) == 0 {
		return "", errors.New("set the variable EDITOR to an editor, such as nano")
	}
	dir, err := os.MkdirTemp("", "drawbridge-review-")
	if err != nil {
		return "", fmt.Errorf("edit the text: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "text.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("edit the text: %w", err)
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = a.In, a.Err, a.Err, a.Environ, a.Dir
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run the editor %s: %w", words[0], err)
	}
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxEdited {
		err = fmt.Errorf("it has more than %d bytes", maxEdited)
	}
	if err != nil {
		return "", fmt.Errorf("read the edited text: %w", err)
	}
	saved, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the edited text: %w", err)
	}
	return string(saved), nil
}
