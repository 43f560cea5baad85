package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

const (
	// minCallPrefix is the length of the shortest beginning of a call's ID that is looked for.
	minCallPrefix = 6
	// maxRunTime is the time before a call in which the search looks for earlier calls of the same run.
	maxRunTime = 7 * 24 * time.Hour
)

// isCallPrefix reports whether a text may be the ID of a call or the beginning of one.
func isCallPrefix(text string) bool {
	return len(text) >= minCallPrefix && len(text) <= ulid.EncodedSize &&
		strings.Trim(strings.ToUpper(text), ulid.Encoding) == ""
}

// whyCall describes the call with an ID, or with the only ID that begins with it. The error is a UserError if there is
// no such call. log is nil if there is no log of changes.
func (r *Service) whyCall(ctx context.Context, log *undo.Log, id string, maxReads int) (why *CallWhy, err error) {
	a, err := r.OpenAudit(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	call, err := a.findCall(ctx, strings.ToUpper(id))
	if err != nil {
		return nil, err
	}
	prompt := r.newPromptFinder().find(call.Caller.Thread, call.At)
	why = &CallWhy{ID: call.ID, Recorded: true, At: call.At, Tool: call.Card, Server: call.Server, Caller: call.Caller.Principal,
		Kind: call.Caller.Kind, Client: call.Caller.Client, Thread: call.Caller.Thread, Run: call.Caller.Run, Prompt: prompt.Line,
		Model: prompt.Model, Verdict: call.Effect, Rule: call.Rule, Reason: call.Reason, Approval: call.Approval, By: call.By,
		Outcome: string(call.Outcome), Arguments: call.Digest, Label: call.Label, Origins: call.Origins}
	reads, err := a.readsBefore(ctx, call)
	if err != nil {
		return nil, err
	}
	if log != nil {
		if why.Files, err = log.CallChanges(call.ID); err != nil {
			return nil, err
		}
	}
	if reads, err = r.withContents(ctx, log, why, reads); err != nil {
		return nil, err
	}
	why.setReads(reads, maxReads)
	return why, nil
}

// findCall returns the call with an ID, or with the only ID that begins with it.
func (a *Audit) findCall(ctx context.Context, id string) (call audit.Record, err error) {
	var found []audit.Record
	if len(id) == ulid.EncodedSize {
		stored, err := a.db.AuditRecordsOfCall(ctx, id)
		if err != nil {
			return call, err
		}
		for _, s := range stored {
			rec, err := decodeAuditRecord(s)
			if err != nil {
				return call, err
			}
			found = append(found, rec)
		}
		found = audit.MergeOutcomes(found)
	} else {
		const encodedTime = 10 // the first characters of an ID are its time
		first, err := ulid.ParseStrict((id + strings.Repeat("0", ulid.EncodedSize))[:ulid.EncodedSize])
		if err != nil {
			return call, userErrorf("%s is not the beginning of an ID of a call (drawbridge audit log)", safetext.Line(id))
		}
		since := ulid.Time(first.Time())
		if len(id) > encodedTime {
			since = since.Add(-time.Second) // the record may be a little older than its ID
		}
		if found, err = a.Calls(ctx, AuditQuery{Since: since}); err != nil {
			return call, err
		}
	}
	ids, other := map[string]bool{}, audit.Record{}
	for _, rec := range found {
		switch {
		case !strings.HasPrefix(rec.ID, id):
		case rec.Kind == audit.Call:
			call = rec
			ids[rec.ID] = true
		default:
			other = rec
		}
	}
	switch len(ids) {
	case 0:
		if other.ID != "" {
			return call, userErrorf("%s is the record of %s, which is not a call (drawbridge audit show %s)",
				safetext.Line(id), safetext.Line(other.Method), safetext.Line(other.ID))
		}
		return call, userErrorf("the audit has no call %s (drawbridge audit log)", safetext.Line(id))
	case 1:
		return call, nil
	}
	return audit.Record{}, userErrorf("%d calls have an ID that begins with %s (write more of the ID: drawbridge audit log)",
		len(ids), safetext.Line(id))
}

// readsBefore returns what the run of a call had read before it, in the order of the calls. The digests are missing.
func (a *Audit) readsBefore(ctx context.Context, call audit.Record) (reads []Read, err error) {
	if call.Caller.Run == "" && call.Caller.Session == "" {
		return nil, nil // nothing connects the calls
	}
	all, err := a.db.FindAudit(ctx, store.AuditFilter{Since: call.At.Add(-maxRunTime), Caller: call.Caller.Principal})
	if err != nil {
		return nil, err
	}
	sortByTime(all)
	for _, rec := range all {
		if rec.Kind == audit.Call && rec.ID < call.ID && rec.Outcome == audit.OK && sameRun(rec.Caller, call.Caller) {
			if read, ok := recordedRead(rec); ok {
				reads = append(reads, read)
			}
		}
	}
	return reads, nil
}

// sameRun reports whether the calls of two callers belong to the same run; see deck.RunOf.
func sameRun(a, b audit.Caller) bool {
	if a.Run != "" || b.Run != "" {
		return a.Thread == b.Thread && a.Run == b.Run
	}
	return a.Session == b.Session && a.Principal == b.Principal && a.Client == b.Client
}

// readingTools are Drawbridge's own tools that read, with the argument that names what they read.
func readingTools() map[string][2]string {
	return map[string][2]string{"read": {"file", "path"}, "grep": {"file", "path"}, "ls": {"file", "path"}, "find": {"file", "path"},
		"webfetch": {"page", "url"}, "websearch": {"call", "query"}, "page_read": {"entity", "page"}, "page_search": {"call", "query"},
		"page_history": {"entity", "page"}, "page_diff": {"entity", "revision"}, "memory_read": {"call", "tier"}}
}

// recordedRead returns what a recorded call has read; ok is false for a call that reads nothing.
func recordedRead(rec audit.Record) (read Read, ok bool) {
	read = Read{Kind: "result", Name: rec.Card, Server: rec.Server, Call: rec.ID}
	if rec.Server != "" {
		return read, rec.Method == mcp.MethodToolsCall || rec.Method == mcp.MethodResourcesRead || rec.Method == mcp.MethodPromptsGet
	}
	tool, ok := readingTools()[rec.Card]
	if !ok {
		return read, false
	}
	read.Kind = tool[0]
	if name := rawjson.GetString(rec.Arguments, tool[1]); name != "" {
		read.Name = cmp.Or(name, read.Name)
	}
	if read.Kind == "call" {
		read.Name = strings.TrimSpace(rec.Card + " " + rawjson.GetString(rec.Arguments, tool[1]))
	}
	return read, true
}

// withContents returns the reads with the digests, as far as the log of changes and the workspace have them. A call
// that has read several files has a read for each. It also adds to why what the call wrote to the workspace.
func (r *Service) withContents(ctx context.Context, log *undo.Log, why *CallWhy, reads []Read) (all []Read, err error) {
	calls, ids := map[string]bool{}, make([]string, len(reads))
	for i, read := range reads {
		calls[read.Call], ids[i] = true, read.Call
	}
	known := map[string][]Read{}
	add := func(read Read) {
		if !slices.Contains(known[read.Call], read) {
			known[read.Call] = append(known[read.Call], read)
		}
	}
	if log != nil {
		sources, err := log.CallSources(calls)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			add(readOf(s))
		}
	}
	if err := r.addWrites(ctx, why, ids, add); err != nil {
		return nil, err
	}
	for _, read := range reads {
		if stored := known[read.Call]; len(stored) > 0 {
			all = append(all, stored...)
		} else {
			all = append(all, read)
		}
	}
	return all, nil
}

// addWrites adds what a call wrote to the workspace, and passes what the calls ids had read from outside to add. It does
// nothing if there is no workspace.
func (r *Service) addWrites(ctx context.Context, why *CallWhy, ids []string, add func(Read)) error {
	return r.lookIntoWorkspace(ctx, func(w *store.Workspace) (err error) {
		if why.Writes, err = w.CallWrites(ctx, why.ID); err != nil {
			return err
		}
		references, err := w.CallReferences(ctx, ids)
		for _, ref := range references {
			add(Read{ref.Kind, ref.Name, ref.Server, ref.Digest, ref.Call})
		}
		return err
	})
}

// addNames adds the names of the pages and items of memory that a call wrote, or that its run had read. It does nothing
// if c is nil or if there is no workspace.
func (r *Service) addNames(ctx context.Context, c *CallWhy) error {
	if c == nil {
		return nil
	}
	var ids []string
	for _, w := range c.Writes {
		ids = append(ids, string(w.Entity))
	}
	for _, read := range c.Reads {
		if read.Kind == deck.EntitySource {
			ids = append(ids, read.Name)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return r.lookIntoWorkspace(ctx, func(w *store.Workspace) error {
		c.Names = map[string]string{}
		for _, id := range ids {
			node, err := w.Why(ctx, id, workspace.WhyOptions{Depth: 1, Width: 1})
			switch {
			case err == nil:
				c.Names[id] = node.Title()
			case !isNotFound(err): // it may have been removed
				return err
			}
		}
		return nil
	})
}

// lookIntoWorkspace calls look with the workspace, if there is one.
func (r *Service) lookIntoWorkspace(ctx context.Context, look func(*store.Workspace) error) (err error) {
	w, err := gateway.OpenWorkspace(ctx, r.o.Gateway)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return look(w)
}

// isNotFound reports whether an error is a fault with the code NotFound.
func isNotFound(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Code == drawbridge.NotFound
}
