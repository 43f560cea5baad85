package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A WhyAnswer says why something is there. Either File or Call is set.
type WhyAnswer struct {
	File *FileWhy `json:"file,omitempty"`
	Call *CallWhy `json:"call,omitempty"`
}

// A FileWhy says which calls wrote the lines of a file.
type FileWhy struct {
	undo.Blame
	// Line is the line that was asked for; 0 for the whole file. Then Range is its range, and Writer the call that
	// wrote it; Writer is nil if no known call wrote it.
	Line   int         `json:"line,omitempty"`
	Range  *undo.Range `json:"range,omitempty"`
	Writer *CallWhy    `json:"writer,omitempty"`
}

// A CallWhy describes a call and what its run had read before it.
type CallWhy struct {
	// ID is the ID of the audit record. Recorded reports that the audit has the record; otherwise only what the log of
	// changes has is known.
	ID       string    `json:"id,omitempty"`
	Recorded bool      `json:"recorded"`
	At       time.Time `json:"at"`
	Tool     string    `json:"tool"`
	Server   string    `json:"server,omitempty"`
	Caller   string    `json:"caller,omitempty"`
	Kind     string    `json:"kind,omitempty"`
	Client   string    `json:"client,omitempty"`
	Thread   string    `json:"thread,omitempty"`
	Run      string    `json:"run,omitempty"`
	// Prompt is the first line of the person's last prompt before the call, and Model the model that answered it; both
	// are empty if the history of the agent does not have them.
	Prompt string `json:"prompt,omitempty"`
	Model  string `json:"model,omitempty"`
	// Verdict, Rule, Reason, Approval, By and Outcome are those of the audit record. Arguments is the SHA-256 of the
	// arguments.
	Verdict   string `json:"verdict,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Approval  string `json:"approval,omitempty"`
	By        string `json:"by,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Arguments string `json:"arguments_sha256,omitempty"`
	// Label is the label of the run with which the call was made, and Origins are its first sources, as in the audit.
	Label   string   `json:"label,omitempty"`
	Origins []string `json:"origins,omitempty"`
	// Files are the files that the call changed, and Writes what it wrote to the workspace.
	Files  []*undo.Written       `json:"files,omitempty"`
	Writes []workspace.CallWrite `json:"writes,omitempty"`
	// Reads are what the run had read before the call, the last one first. MoreReads is the number of earlier ones that
	// are left out.
	Reads     []Read `json:"reads,omitempty"`
	MoreReads int    `json:"more_reads,omitempty"`
	// Names are the names of the objects of the workspace among Writes and Reads, such as "page Frogs (frogs)", by ID.
	Names map[string]string `json:"names,omitempty"`
}

// A Read is something that a run has read.
type Read struct {
	// Kind is "file", "page", "result" or "entity"; "call" for another call of one of Drawbridge's own tools.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Server string `json:"server,omitempty"`
	// Digest is the SHA-256 of the content; empty if it is not stored. Call is the ID of the audit record of the call
	// that read it.
	Digest string `json:"digest,omitempty"`
	Call   string `json:"call,omitempty"`
}

// Why says why something is there. target is a file, a file with a line as in main.go:12, or the ID of a call in the
// audit or the beginning of one. At most maxReads sources are listed. The error is a UserError if nothing is known of
// the target.
func (r *Service) Why(ctx context.Context, target string, maxReads int) (answer WhyAnswer, err error) {
	path, line, err := r.splitLine(target)
	if err != nil {
		return answer, err
	}
	log, err := r.openUndoLog(ctx)
	if err != nil && !errors.Is(err, errNoUndo) {
		return answer, err
	}
	if log != nil {
		file := &FileWhy{Line: line}
		file.Blame, err = log.Blame(path)
		switch {
		case err == nil:
			if err = r.whyLine(ctx, log, file, maxReads); err == nil {
				err = r.addNames(ctx, file.Writer)
			}
			return WhyAnswer{File: file}, err
		case !errors.Is(err, undo.ErrNoChanges):
			return answer, fmt.Errorf("read %s: %w", safetext.Line(path), err)
		}
	}
	if err := unknownFile(path, target); err != nil {
		return answer, err
	}
	answer.Call, err = r.whyCall(ctx, log, target, maxReads)
	_, isUser := errors.AsType[UserError](err)
	if _, none := errors.AsType[*NoStoreError](err); isUser || none {
		return answer, userErrorf("%s is not a file, and not the ID of a known call: %v", safetext.Line(target), err)
	}
	if err != nil {
		return answer, err
	}
	return answer, r.addNames(ctx, answer.Call)
}

// unknownFile returns the error for a path at which no tool has written a file. It returns nil if nothing is at the path
// and the target can be the ID of a call.
func unknownFile(path, target string) error {
	const takes = "(drawbridge why takes a file, FILE:LINE, or the ID of a call: drawbridge audit log)"
	stat, err := os.Stat(path)
	switch {
	case err == nil && stat.IsDir():
		return userErrorf("%s is a directory %s", safetext.Line(target), takes)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return userErrorf("%s: %v %s", safetext.Line(target), undo.ErrNoChanges, takes)
	case !isCallPrefix(target):
		return userErrorf("%s does not exist, and no tool of Drawbridge has written a file with this name %s",
			safetext.Line(target), takes)
	}
	return nil
}

// absolute returns the absolute path of a file that the person named.
func (r *Service) absolute(name string) (string, error) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Abs(filepath.Join(r.o.ConfigOptions.Dir, name))
}

// splitLine splits the number of a line from a target such as main.go:12, and returns the absolute path. A file whose
// name ends like this is a file. The error is a UserError for a line that is not a line of any file.
func (r *Service) splitLine(target string) (path string, line int, err error) {
	path, err = r.absolute(target)
	if err != nil {
		return "", 0, err
	}
	i := strings.LastIndexByte(target, ':')
	if _, statErr := os.Lstat(path); statErr == nil || i <= 0 {
		return path, 0, nil
	}
	line, err = strconv.Atoi(target[i+1:])
	if err != nil {
		return path, 0, nil
	}
	if line < 1 {
		return "", 0, userErrorf("%s: lines are counted from 1", safetext.Line(target))
	}
	path, err = r.absolute(target[:i])
	return path, line, err
}

// whyLine adds the range and the writer of the line that was asked for.
func (r *Service) whyLine(ctx context.Context, log *undo.Log, file *FileWhy, maxReads int) error {
	if file.Line == 0 || file.ChangedAfter != nil || file.Digest == "" {
		return nil
	}
	found, ok := file.Blame.Line(file.Line)
	if !ok {
		return userErrorf("%s has no line %d: it has %s", safetext.Line(file.Path), file.Line, lineCount(file.Ranges))
	}
	file.Range = &found
	if found.By == nil {
		return nil
	}
	writer, err := r.writerOf(ctx, log, *found.By)
	if err != nil {
		return err
	}
	sources, err := log.Sources(found.By.Thread, found.By.Run, found.By.Time)
	if err != nil {
		return err
	}
	reads := make([]Read, len(sources))
	for i, s := range sources {
		reads[i] = readOf(s)
	}
	recorded := slices.Clone(writer.Reads)
	slices.Reverse(recorded)
	if len(reads) == 0 { // a person's call, or a change of an earlier release
		reads = recorded
	}
	writer.setReads(withForgotten(reads, recorded), maxReads)
	file.Writer = &writer
	return nil
}

// lineCount returns the words for the number of lines in all ranges of a file.
func lineCount(ranges []undo.Range) string {
	last := 0
	if len(ranges) > 0 {
		last = ranges[len(ranges)-1].Last
	}
	if last == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", last)
}

// writerOf returns the call that made a change. If the audit does not have its record, the description has what the log
// of changes has.
func (r *Service) writerOf(ctx context.Context, log *undo.Log, w undo.Written) (CallWhy, error) {
	if w.Call != "" {
		call, err := r.whyCall(ctx, log, w.Call, 0)
		if err == nil {
			call.Thread, call.Run = w.Thread, w.Run
			return *call, nil
		}
		if _, isUser := errors.AsType[UserError](err); !isUser {
			if _, none := errors.AsType[*NoStoreError](err); !none {
				return CallWhy{}, err
			}
		}
	}
	prompt := r.newPromptFinder().find(w.Thread, w.Time)
	return CallWhy{ID: w.Call, At: w.Time, Tool: w.Tool, Caller: w.Caller, Kind: w.Kind, Client: w.Client, Thread: w.Thread, Run: w.Run,
		Prompt: prompt.Line, Model: prompt.Model}, nil
}

// withForgotten returns the noted reads of a run with those results that it did not note, because it had noted enough
// results of the same tool. recorded are the reads that the audit has, in the order of the calls.
func withForgotten(noted, recorded []Read) []Read {
	type tool struct{ name, server string }
	results, calls := map[tool]int{}, map[string]bool{}
	for _, r := range noted {
		calls[r.Call] = true
		if r.Kind == "result" {
			results[tool{r.Name, r.Server}]++
		}
	}
	type placed struct {
		Read
		after string // the call that read it, or the one before
	}
	var all []placed
	last := ""
	for _, r := range noted {
		last = cmp.Or(r.Call, last)
		all = append(all, placed{r, last})
	}
	for _, r := range recorded {
		if r.Kind == "result" && !calls[r.Call] && results[tool{r.Name, r.Server}] >= deck.MaxResultVersions {
			all = append(all, placed{r, r.Call})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return strings.Compare(a.after, b.after) })
	reads := make([]Read, len(all))
	for i, p := range all {
		reads[i] = p.Read
	}
	return reads
}

// setReads sets the reads from those in the order of the calls: the last one first, and at most limit; 0 means no
// limit.
func (c *CallWhy) setReads(all []Read, limit int) {
	c.Reads = slices.Clone(all)
	slices.Reverse(c.Reads)
	if c.MoreReads = 0; limit > 0 && len(c.Reads) > limit {
		c.MoreReads = len(c.Reads) - limit
		c.Reads = c.Reads[:limit]
	}
}

func readOf(s deck.Source) Read {
	return Read{Kind: s.Kind, Name: s.Name, Server: string(s.Server), Digest: s.Digest.String(), Call: s.Call}
}
