package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxAttachedText and maxAttachedImage are the maximum sizes of attached files in bytes.
	maxAttachedText  = 10 << 20
	maxAttachedImage = 20 << 20
)

// An attachmentError says why a file cannot be attached. Its first word is one of Unsupported, TooLarge, NotFound and
// ReadFailed, as in the agent system that Drawbridge is compatible with.
type attachmentError struct{ word, path, text string }

func (e attachmentError) Error() string {
	return fmt.Sprintf("attach %s: %s: %s", safetext.Exact(e.path), e.word, e.text)
}

// wordsOf returns the words of a text that may attach files; a text without "@" is one word.
func wordsOf(text string) []string {
	if !strings.Contains(text, "@") {
		return []string{text}
	}
	return strings.Split(text, " ")
}

// promptOf returns the parts of a prompt: words are joined by blanks, and a word that begins with "@" is the path of a
// file. Text files become a block in the text, images a part.
func promptOf(dir string, words []string) (parts []drawbridge.MessagePart, err error) {
	var text, typed, files []string
	for _, word := range words {
		path, attached := strings.CutPrefix(word, "@")
		if !attached || path == "" || strings.ContainsAny(path, " \n") {
			text, typed = append(text, word), append(typed, word)
			continue
		}
		part, err := attach(dir, path)
		if err != nil {
			return nil, usageError{err}
		}
		if part.Image != nil {
			parts = append(parts, part)
		} else {
			text, files = append(text, part.Text), append(files, part.Attached...)
		}
	}
	if whole := strings.TrimSpace(strings.Join(text, " ")); whole != "" {
		prompt := drawbridge.MessagePart{Text: whole}
		if len(files) > 0 {
			words := strings.Join(typed, " ")
			prompt.Typed, prompt.Attached = &words, files
		}
		parts = append([]drawbridge.MessagePart{prompt}, parts...)
	}
	return parts, nil
}

// standardInput is the name of the text on standard input as an attachment.
const standardInput = "standard input"

// withPiped adds the text on standard input to a prompt. If the person has typed a prompt, the text is an attachment:
// it may come from anywhere. Otherwise it is what the person asks.
func withPiped(dir string, parts []drawbridge.MessagePart, piped string) ([]drawbridge.MessagePart, error) {
	if len(parts) == 0 || parts[0].Image != nil {
		asked, err := promptOf(dir, []string{piped})
		return append(asked, parts...), err
	}
	p := &parts[0]
	typed := p.Text
	if p.Typed != nil {
		typed = *p.Typed
	}
	if p.Text += " " + piped; strings.TrimSpace(typed) == "" { // only files
		p.Typed = &piped
		return parts, nil
	}
	p.Typed, p.Attached = &typed, append(p.Attached, standardInput)
	return parts, nil
}

// attach returns the part for one file.
func attach(dir, path string) (part drawbridge.MessagePart, err error) {
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, path)
	}
	info, err := os.Stat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return part, attachmentError{"NotFound", path, "there is no such file"}
	case err != nil:
		return part, attachmentError{"ReadFailed", path, err.Error()}
	case !info.Mode().IsRegular():
		return part, attachmentError{"Unsupported", path, "it is not a file"}
	case info.Size() > maxAttachedImage:
		return part, attachmentError{"TooLarge", path, fmt.Sprintf("it has more than %d MiB", maxAttachedImage>>20)}
	}
	content, err := os.ReadFile(full)
	if err != nil {
		return part, attachmentError{"ReadFailed", path, err.Error()}
	}
	if kind := http.DetectContentType(content); strings.HasPrefix(kind, "image/") {
		return drawbridge.MessagePart{Image: &drawbridge.Image{MIMEType: kind, Data: content}}, nil
	}
	switch {
	case len(content) > maxAttachedText:
		return part, attachmentError{"TooLarge", path, fmt.Sprintf("a text may have %d MiB", maxAttachedText>>20)}
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return part, attachmentError{"Unsupported", path, "it is neither a text nor an image"}
	}
	return drawbridge.MessagePart{Text: fmt.Sprintf("<file path=%q>\n%s\n</file>\n", path, content), Attached: []string{full}}, nil
}
