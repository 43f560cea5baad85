package agent

import (
	"os"
	"path/filepath"
	"strings"
)

// A RunInfo describes a run of a session.
type RunInfo struct {
	// Prompt is the first line of the person's message with which the run began.
	Prompt string
	// Model is the model of the run's last answer, as "provider/name"; empty if there was none.
	Model string
}

// FindRun returns a run of a session. root is the directory with the directories of sessions. The result is zero if the
// session or the run does not exist any more, or cannot be read.
func FindRun(root, session, run string) (info RunInfo) {
	if _, err := historyPath(root, session); err != nil || run == "" {
		return info
	}
	dirs, err := os.ReadDir(root)
	if err != nil {
		return info
	}
	for _, d := range dirs {
		path := filepath.Join(root, d.Name(), session+historySuffix)
		if stat, err := os.Lstat(path); err != nil || !stat.Mode().IsRegular() {
			continue
		}
		if info := readRun(path, run); info != (RunInfo{}) {
			return info
		}
	}
	return info
}

// readRun reads a run from a session's file.
func readRun(path, run string) (info RunInfo) {
	file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return info
	}
	defer func() { _ = file.Close() }() // it was only read
	for e, err := range readEntries(file, nil) {
		switch {
		case err != nil:
			return info
		case e.Run != run || e.Agent != "":
		case e.Kind == PromptEntry && e.Message != nil && info.Prompt == "":
			info.Prompt, _, _ = strings.Cut(strings.TrimSpace(e.Message.Text()), "\n")
		case e.Kind == ModelEntry:
			info.Model = e.Model
		}
	}
	return info
}
