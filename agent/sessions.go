package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A SessionInfo describes a session in a directory.
type SessionInfo struct {
	ID   string `json:"id"`
	Path string `json:"path"`
	Name string `json:"name,omitempty"`
	// FirstPrompt is the first message of the person.
	FirstPrompt string    `json:"firstPrompt"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	// Messages is the number of messages of the person and of the model, without those of sub-agents.
	Messages int `json:"messages"`
	// Model, Mode and Thinking are the last that a person chose; empty if they were never changed.
	Settings Settings `json:"settings"`
	// LastModel is the model of the last answer, as "provider/name".
	LastModel string `json:"lastModel,omitempty"`
	// Err says why the rest of the file could not be read.
	Err string `json:"error,omitempty"`
}

// ListSessions returns the sessions in a directory in which a person said something, those with the newest entries
// first. A directory that does not exist has none.
func ListSessions(dir string) ([]SessionInfo, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var all []SessionInfo
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), historySuffix)
		if !ok || !f.Type().IsRegular() {
			continue
		}
		info := describeSession(id, filepath.Join(dir, f.Name()))
		if info.Messages > 0 || info.Err != "" {
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b SessionInfo) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	return all, nil
}

// describeSession reads a session's file.
func describeSession(id, path string) SessionInfo {
	info := SessionInfo{ID: id, Path: path}
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		info.Err = err.Error()
		return info
	}
	defer func() { _ = file.Close() }() // it was only read
	for e, err := range readEntries(file, nil) {
		if err != nil {
			info.Err = err.Error()
			return info
		}
		info.add(e)
	}
	return info
}

func (i *SessionInfo) add(e Entry) {
	if i.Created.IsZero() {
		i.Created = e.Time
	}
	i.Updated = e.Time
	if e.Agent != "" {
		return
	}
	switch {
	case e.Kind == PromptEntry && e.Message != nil:
		if i.Messages++; i.FirstPrompt == "" {
			i.FirstPrompt = e.Message.Text()
		}
	case e.Kind == ModelEntry:
		i.Messages++
		i.LastModel = e.Model
	case e.Kind == SettingsEntry && e.Settings != nil:
		i.Settings = i.Settings.merge(*e.Settings)
		i.Name = i.Settings.Name
	}
}
