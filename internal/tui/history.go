package tui

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"
)

const (
	// maxHistory is how many prompts are remembered, and maxHistoryLine the longest one that is.
	maxHistory     = 1000
	maxHistoryLine = 16 << 10
	maxHistoryFile = 4 << 20
)

// A promptHistory holds the earlier prompts of a person, the newest last. at is the one that is shown; len(prompts)
// means the draft.
type promptHistory struct {
	path    string
	prompts []string
	at      int
	draft   string
}

// readHistory reads the file at path, one JSON string a line. Without a path, prompts are remembered until the end.
func readHistory(path string) (*promptHistory, error) {
	h := &promptHistory{path: path}
	if path == "" {
		return h, nil
	}
	if err := privatefile.Check(path, false); err != nil {
		return h, fmt.Errorf("read the input history: %w", err)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read the input history: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err == nil && info.Size() > maxHistoryFile {
		if _, err := file.Seek(-maxHistoryFile, io.SeekEnd); err != nil {
			return h, fmt.Errorf("read the input history: %w", err)
		}
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 8*maxHistoryLine)
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil && text != "" {
			h.remember(text)
		}
	}
	return h, nil
}

// remember adds a prompt in memory.
func (h *promptHistory) remember(text string) {
	if n := len(h.prompts); n == 0 || h.prompts[n-1] != text {
		h.prompts = append(h.prompts, text)
	}
	h.prompts = h.prompts[max(0, len(h.prompts)-maxHistory):]
	h.at, h.draft = len(h.prompts), ""
}

// add remembers a prompt and appends it to the file, which only its owner may read.
func (h *promptHistory) add(text string) error {
	if strings.TrimSpace(text) == "" || len(text) > maxHistoryLine {
		return nil
	}
	h.remember(text)
	if h.path == "" {
		return nil
	}
	line, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("write the input history: %w", err)
	}
	if err := privatefile.Check(h.path, false); err != nil {
		return fmt.Errorf("write the input history: %w", err)
	}
	file, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("write the input history: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the input history: %w", err)
	}
	return nil
}

// step returns the prompt before (-1) or after (1) the shown one. text is what the input box has now.
func (h *promptHistory) step(by int, text string) (string, bool) {
	at := h.at + by
	if at < 0 || at > len(h.prompts) {
		return "", false
	}
	if h.at == len(h.prompts) {
		h.draft = text
	}
	h.at = at
	if at == len(h.prompts) {
		return h.draft, true
	}
	return h.prompts[at], true
}
