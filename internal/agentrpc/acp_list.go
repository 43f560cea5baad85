package agentrpc

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// listPage is the number of sessions in one response to session/list.
	listPage = 100
	// titleLength is the maximum number of bytes of a session's title.
	titleLength = 120
)

// A listedSession is a session in the response to session/list.
type listedSession struct {
	ID      string     `json:"sessionId"`
	Dir     string     `json:"cwd"`
	Title   string     `json:"title,omitempty"`
	Updated *time.Time `json:"updatedAt,omitempty"`
}

// listSessions responds with a page of the sessions of a directory. The cursor is the last session of the page before.
func (s *acpServer) listSessions(id json.RawMessage, p acpParams) *rpcError {
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		return invalidParams("cwd is not an absolute path")
	}
	s.work.Go(func() {
		all, err := s.host.Sessions(s.ctx, p.Dir)
		if err != nil {
			s.respond(id, nil, &rpcError{Code: codeInternal, Message: err.Error()})
			return
		}
		all = slices.DeleteFunc(all, func(l ListedSession) bool { return l.Err != "" }) // they cannot be opened
		if p.Cursor != "" {
			i := slices.IndexFunc(all, func(l ListedSession) bool { return l.ID == p.Cursor })
			if i < 0 {
				s.respond(id, nil, invalidParams("the cursor names no session of this list"))
				return
			}
			all = all[i+1:]
		}
		page := struct {
			Sessions []listedSession `json:"sessions"`
			Next     string          `json:"nextCursor,omitempty"`
		}{Sessions: []listedSession{}}
		for _, l := range all[:min(len(all), listPage)] {
			page.Sessions = append(page.Sessions, describeListed(l))
		}
		if len(all) > listPage {
			page.Next = all[listPage-1].ID
		}
		s.respond(id, page, nil)
	})
	return nil
}

// describeListed returns what a client is told about a session. Its title is its name, or the first line of its first
// prompt.
func describeListed(l ListedSession) listedSession {
	title, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(l.Name, l.FirstPrompt)), "\n")
	out := listedSession{ID: l.ID, Dir: l.Dir,
		Title: safetext.OneLine(safetext.Truncate(title, titleLength, safetext.Bytes, "…"))}
	if !l.Updated.IsZero() {
		out.Updated = &l.Updated
	}
	return out
}
