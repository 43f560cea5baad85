package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A PromptInfo describes a prompt of a session, and the answer to it.
type PromptInfo struct {
	// At is the time of the prompt, and Line its first line.
	At   time.Time
	Line string
	// Model is the model of the last message of the answer, as "provider/name"; empty if there was none.
	Model string
	// Typed are the texts of the prompt that the person typed, without attached files.
	Typed []string
}

// FindSessions returns the IDs of the sessions that begin with a text, in any case of the letters. root is the
// directory with the directories of sessions. If the text is a whole ID, only that one is returned.
func FindSessions(root, beginning string) ([]string, error) {
	dirs, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var found []string
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(root, d.Name()))
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		for _, f := range files {
			id, ok := strings.CutSuffix(f.Name(), historySuffix)
			switch {
			case !ok || !f.Type().IsRegular():
			case id == beginning:
				return []string{id}, nil
			case len(id) >= len(beginning) && strings.EqualFold(id[:len(beginning)], beginning):
				found = append(found, id)
			}
		}
	}
	return found, nil
}

// ListPrompts returns the prompts of a session, in their order. root is the directory with the directories of sessions.
// There are none if the session does not exist any more, or cannot be read.
func ListPrompts(root, session string) []PromptInfo {
	if _, err := historyPath(root, session); err != nil {
		return nil
	}
	dirs, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		path := filepath.Join(root, d.Name(), session+historySuffix)
		if stat, err := os.Lstat(path); err == nil && stat.Mode().IsRegular() {
			return readPrompts(path)
		}
	}
	return nil
}

// readPrompts reads the prompts from a session's file.
func readPrompts(path string) (all []PromptInfo) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // it was only read
	for e, err := range readEntries(file, nil) {
		switch {
		case err != nil:
			return all
		case e.Agent != "":
		case e.Kind == PromptEntry && e.Message != nil:
			line, _, _ := strings.Cut(strings.TrimSpace(e.Message.Text()), "\n")
			all = append(all, PromptInfo{At: e.Time, Line: line, Typed: typedTexts(e.Message.Parts)})
		case e.Kind == ModelEntry && len(all) > 0:
			all[len(all)-1].Model = e.Model
		}
	}
	return all
}

// typedTexts returns the texts in the parts of a prompt that the person typed.
func typedTexts(parts []drawbridge.MessagePart) (typed []string) {
	for _, p := range parts {
		text := p.Text
		if p.Typed != nil {
			text = *p.Typed
		}
		if text != "" {
			typed = append(typed, text)
		}
	}
	return typed
}
