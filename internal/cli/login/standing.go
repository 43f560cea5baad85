package login

import (
	"context"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// Standings say how we stand with servers that one signs in at.
type Standings map[drawbridge.ServerID]drawbridge.Credential

// StandingsOf gives those of rows with which a credential has to do: whose row says how to sign in, or at which somebody did,
// or was to. No server is asked.
func StandingsOf(p roster.Porter, rows []config.Server) Standings {
	all := Standings{}
	for _, row := range rows {
		access, err := p.Access(row.ID)
		if err != nil {
			continue // nobody signs in there
		}
		c, err := access.State()
		if err != nil && c.Name != "" { // it is kept, and cannot be read
			c.Trouble, err = err.Error(), nil
		}
		if err == nil && (c.Signed || c.URL != "" || c.Trouble != "" || row.Auth != nil) {
			all[row.ID] = c
		}
	}
	return all
}

// A Kept credential is one with what it comes to, as the doctor says it.
type Kept struct {
	drawbridge.Credential
	Standing string `json:"standing"`
	// Needed says why somebody has to sign in; empty where nobody has.
	Needed string `json:"needed,omitempty"`
}

// Kept gives all credentials, in the order of the servers' names. Statuses are what is remembered of the servers.
func (all Standings) Kept(statuses []drawbridge.Status) (kept []Kept) {
	known := maps.Clone(all)
	wanted := map[drawbridge.ServerID]bool{}
	for _, s := range statuses {
		if s.Phase != drawbridge.NeedsSignIn {
			continue
		}
		wanted[s.Server] = true
		if _, ok := known[s.Server]; !ok {
			known[s.Server] = drawbridge.Credential{Server: s.Server}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		c := known[id]
		k := Kept{Credential: c, Standing: Standing(c)}
		switch {
		case c.Signed:
		case c.Trouble != "":
			k.Needed = c.Trouble
		case c.URL != "" || wanted[id]:
			k.Needed = "nobody is signed in"
		}
		kept = append(kept, k)
	}
	return kept
}

// Strays names the sign-ins of a vault that are at none of these servers.
func (all Standings) Strays(entries []secrets.Entry) (names []string) {
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name, "signin/")
		for _, c := range all {
			ok = ok && c.Name != e.Name
		}
		if ok {
			names = append(names, name)
		}
	}
	return names
}

// Unauthorized says whether a server went wrong since it wants to know who asks.
func Unauthorized(fault error) bool {
	return fault != nil && drawbridge.AsFault(fault).Code == drawbridge.AuthFailure
}

// Refused says what a server wants that refuses us and is not signed in at (seed 001 knows three things that it may want).
func Refused(row config.Server) string {
	key := row.Auth != nil && row.Auth.Type == "apikey" ||
		slices.ContainsFunc(row.Headers, func(p config.Pair) bool { return strings.EqualFold(p.Name, "Authorization") })
	if key {
		return "Server requires API key authentication."
	}
	return "Server requires authentication but type could not be determined."
}

// A Listed server is how a server is, with how we stand with it.
type Listed struct {
	drawbridge.Status
	Credential *drawbridge.Credential `json:"credential,omitempty"`
	// open says that who prepared the sign-in waits still for the browser to come back.
	open bool
}

// List adds to how servers are what is kept of their sign-ins. A living process knows best what its server wants;
// what a process wanted that is gone may be there by now.
func (all Standings) List(rows []drawbridge.Status) []Listed {
	out := make([]Listed, len(rows))
	for i, row := range rows {
		l := Listed{Status: row, open: row.SignIn != ""}
		c, ok := all[row.Server]
		if c.Signed && row.Phase != drawbridge.NeedsSignIn {
			c.URL = "" // nobody needs it any more
		}
		dormant := row.Phase == drawbridge.Idle || row.Phase == drawbridge.Faulted || row.Phase == drawbridge.NeedsSignIn
		switch {
		case !ok:
		case l.open || !dormant:
			l.Credential = &c
		case c.Signed && row.Phase == drawbridge.NeedsSignIn:
			l.Credential, l.Phase = &c, drawbridge.Idle
		case !c.Signed && (c.URL != "" || c.Trouble != ""):
			l.Credential, l.Phase, l.SignIn = &c, drawbridge.NeedsSignIn, c.URL
		default:
			l.Credential = &c
		}
		out[i] = l
	}
	return out
}

// PrintSignIn says what to do about a server that wants to know who asks, or until when it knows.
func (l Listed) PrintSignIn(w io.Writer) {
	c := l.Credential
	if l.Phase != drawbridge.NeedsSignIn {
		if c != nil && (c.Signed || c.Trouble != "") {
			safetext.Fprintf(w, "  %s\n", Standing(*c))
		}
		return
	}
	why := ""
	if c != nil && c.Trouble != "" {
		why = " (" + c.Trouble + ")"
	}
	safetext.Fprintf(w, "  it needs a sign-in%s: drawbridge mcp auth %s\n", why, l.Server)
	PrintWay(w, l.Server, l.SignIn, l.open)
}

// PrintWay adds the address that a sign-in which was prepared goes on at; open says that a process waits there.
func PrintWay(w io.Writer, id drawbridge.ServerID, address string, open bool) {
	switch {
	case address == "":
	case open:
		safetext.Fprintf(w, "  or open %s\n", address)
	default:
		safetext.Fprintf(w, "  or open %s\n  and give the address that the browser ends at to drawbridge mcp auth %s --code -\n", address, id)
	}
}

// Standing says in a few words how we stand with a server.
func Standing(c drawbridge.Credential) string {
	switch {
	case c.Signed && c.Expires.IsZero() && c.Renews:
		return "signed in, until the server says otherwise; renews itself"
	case c.Signed && c.Expires.IsZero():
		return "signed in, until the server says otherwise"
	case c.Signed && c.Renews:
		return "signed in until " + manners.LocalTime(c.Expires) + ", renews itself"
	case c.Signed && c.Expires.Before(time.Now()):
		return "the sign-in ended " + manners.LocalTime(c.Expires)
	case c.Signed:
		return "signed in until " + manners.LocalTime(c.Expires)
	case c.Trouble != "":
		return "needs sign-in: " + c.Trouble
	case c.URL != "":
		return "needs sign-in"
	}
	return "nobody is signed in"
}

// refusal is a status by which servers refuse somebody, and no part of another number.
var refusal = regexp.MustCompile(`\b40[13]\b`)

// missing is the status by which a web server says that it has nothing at an address.
var missing = regexp.MustCompile(`\bstatus (404|410)\b`)

// Tip is the next thing to try after a server did not start or was not reached; empty where nothing is known.
func Tip(fault error) string {
	text := strings.ToLower(fault.Error())
	switch {
	case errors.Is(fault, context.DeadlineExceeded) || strings.Contains(text, "timeout") || strings.Contains(text, "timed out"):
		return "The server may be slow or unresponsive. Try increasing the timeout."
	case Unauthorized(fault) || refusal.MatchString(text):
		return "Check your authentication credentials."
	case strings.Contains(text, "connection refused"):
		return "Check that the server is running and that its URL is right."
	case missing.MatchString(text):
		return "Check that the URL is right: nothing answers there as an MCP server."
	case strings.Contains(text, "not found"):
		return "Check that the command is installed and on the PATH."
	}
	return ""
}
