package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
)

// An AgentTrace is a trace record of the format agent-trace 0.1 (https://github.com/cursor/agent-trace). It has no
// revision of a version control system: the lines are those of the file as it is.
type AgentTrace struct {
	Version   string            `json:"version"`
	ID        string            `json:"id"`
	Timestamp time.Time         `json:"timestamp"`
	Tool      map[string]string `json:"tool"`
	Files     []TracedFile      `json:"files"`
}

// A TracedFile is a file of an AgentTrace. Path is relative to the repository, or to the working directory.
type TracedFile struct {
	Path          string               `json:"path"`
	Conversations []TracedConversation `json:"conversations"`
}

// A TracedConversation has the ranges of lines that one run wrote.
type TracedConversation struct {
	URL         string            `json:"url,omitempty"`
	Contributor map[string]string `json:"contributor"`
	Ranges      []TracedRange     `json:"ranges"`
}

// A TracedRange is a range of lines. ContentHash is the SHA-256 of the lines.
type TracedRange struct {
	StartLine   int    `json:"start_line"`
	EndLine     int    `json:"end_line"`
	ContentHash string `json:"content_hash"`
}

// agentTraceVersion is the version of the format, in the form that its schema wants.
const agentTraceVersion = "0.1"

// AgentTrace returns the trace record of a file. version is that of Drawbridge. Lines that no known call wrote are left
// out. The error is a UserError if nothing is known of the lines.
func (r *Service) AgentTrace(file *FileWhy, version string) (AgentTrace, error) {
	if file.ChangedAfter != nil {
		return AgentTrace{}, userErrorf("%s was changed by hand: nothing is known of its lines", safetext.Line(file.Path))
	}
	content, err := os.ReadFile(file.Path)
	if err != nil {
		return AgentTrace{}, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != file.Digest {
		return AgentTrace{}, fmt.Errorf("read %s: it changes", safetext.Line(file.Path))
	}
	lines := strings.SplitAfter(string(content), "\n")
	traced := TracedFile{Path: filepath.ToSlash(r.repositoryPath(file.Path)), Conversations: []TracedConversation{}}
	prompts, at := r.newPromptFinder(), map[string]int{}
	for _, g := range file.Ranges {
		if g.By == nil || g.Last > len(lines) {
			continue
		}
		key := g.By.Thread + "\x00" + g.By.Run
		i, ok := at[key]
		if !ok {
			i, at[key] = len(traced.Conversations), len(traced.Conversations)
			traced.Conversations = append(traced.Conversations, conversationOf(g.By, prompts))
		}
		sum := sha256.Sum256([]byte(strings.Join(lines[g.First-1:g.Last], "")))
		traced.Conversations[i].Ranges = append(traced.Conversations[i].Ranges,
			TracedRange{g.First, g.Last, "sha256:" + hex.EncodeToString(sum[:])})
	}
	id := sha256.Sum256([]byte(traced.Path + "\x00" + file.Digest))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return AgentTrace{Version: agentTraceVersion, ID: fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]),
		Timestamp: file.Last.Time, Tool: map[string]string{"name": "drawbridge", "version": version}, Files: []TracedFile{traced}}, nil
}

// conversationOf returns the conversation of a change, without ranges.
func conversationOf(w *undo.Written, prompts *promptFinder) TracedConversation {
	c := TracedConversation{Contributor: map[string]string{"type": "ai"}}
	if w.Kind == "author" {
		c.Contributor["type"] = "human"
	}
	if w.Kind == "" {
		c.Contributor["type"] = "unknown"
	}
	if w.Run != "" {
		c.URL = "drawbridge://run/" + url.PathEscape(w.Thread) + "/" + url.PathEscape(w.Run)
	}
	if model := prompts.find(w.Thread, w.Time).Model; model != "" && len(model) <= 250 {
		c.Contributor["model_id"] = model
	}
	return c
}

// repositoryPath returns a path relative to the root of its Git repository; without one, relative to the working
// directory.
func (r *Service) repositoryPath(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return relativeTo(dir, path)
		}
		if dir == filepath.Dir(dir) {
			return relativeTo(r.o.ConfigOptions.Dir, path)
		}
	}
}

func relativeTo(dir, path string) string {
	if relative, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return path
}

// RunTrailers returns the lines for a Git commit message that name the runs that wrote lines of a file.
func RunTrailers(file *FileWhy) (lines []string) {
	seen := map[string]bool{}
	for _, g := range file.Ranges {
		if g.By == nil || g.By.Run == "" {
			continue
		}
		line := "Drawbridge-Run: " + safetext.OneLine(g.By.Thread+"/"+g.By.Run)
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return lines
}
