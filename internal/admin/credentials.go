package admin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// CredentialStates are the states of the credentials by server.
type CredentialStates map[drawbridge.ServerID]drawbridge.CredentialStatus

// ReadCredentialStates returns the credential states of the rows that have auth settings, a stored credential, a
// pending sign-in or a problem. It sends no request.
func ReadCredentialStates(p SignInProvider, rows []config.Server) CredentialStates {
	all := CredentialStates{}
	for _, row := range rows {
		access, err := p.ServerSignIn(row.ID)
		if err != nil {
			continue // the server has no sign-in
		}
		c, err := access.Status()
		if err != nil && c.Name != "" { // the credential is stored but cannot be read
			c.Problem, err = err.Error(), nil
		}
		if err == nil && (c.SignedIn || c.URL != "" || c.Problem != "" || row.Auth != nil) {
			all[row.ID] = c
		}
	}
	return all
}

// CredentialStates returns the states of the credentials for the servers of these rows. It sends no request. The error
// is the error of gateway.OpenSignInManager.
func (r *Service) CredentialStates(ctx context.Context, rows []config.Server) (CredentialStates, error) {
	p, err := gateway.OpenSignInManager(ctx, r.o.Gateway, rows)
	if err != nil {
		return nil, err
	}
	return ReadCredentialStates(p, rows), nil
}

// A CredentialReport is the state of a credential with a description, for the command doctor.
type CredentialReport struct {
	drawbridge.CredentialStatus
	Standing string `json:"standing"`
	// SignInReason is why a sign-in is required; empty if none is required.
	SignInReason string `json:"needed,omitempty"`
}

// Reports returns a report for each credential, sorted by server name. statuses are the stored statuses of the servers.
// A server that needs a sign-in has a report even if it has no credential.
func (all CredentialStates) Reports(statuses []drawbridge.ServerStatus) (kept []CredentialReport) {
	known := maps.Clone(all)
	wanted := map[drawbridge.ServerID]bool{}
	for _, s := range statuses {
		if s.Phase != drawbridge.NeedsSignIn {
			continue
		}
		wanted[s.Server] = true
		if _, ok := known[s.Server]; !ok {
			known[s.Server] = drawbridge.CredentialStatus{Server: s.Server}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		c := known[id]
		k := CredentialReport{CredentialStatus: c, Standing: DescribeCredential(c)}
		switch {
		case c.SignedIn:
		case c.Problem != "":
			k.SignInReason = c.Problem
		case c.URL != "" || wanted[id]:
			k.SignInReason = "not signed in"
		}
		kept = append(kept, k)
	}
	return kept
}

// UnconfiguredSignIns returns the names of the vault's sign-ins that do not belong to any of these servers.
func (all CredentialStates) UnconfiguredSignIns(entries []secrets.SecretInfo) (names []string) {
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

// IsAuthFailure reports whether a fault means that the server requires authentication.
func IsAuthFailure(fault error) bool {
	return fault != nil && drawbridge.AsFault(fault).Code == drawbridge.AuthFailure
}

// AuthRequiredText returns the next step for a server that refused a request without a credential. There are three
// cases: an API key, OAuth, and an unknown type.
func AuthRequiredText(row config.Server) string {
	key := row.Auth != nil && row.Auth.Type == "apikey" ||
		slices.ContainsFunc(row.Headers, func(p config.NameValue) bool {
			return strings.EqualFold(p.Name,
				"Authorization")
		})
	switch {
	case key:
		return "Server requires API key authentication."
	case row.Auth != nil && row.Auth.Type == "oauth":
		return "Server requires OAuth authentication."
	}
	return "Server requires authentication but type could not be determined."
}

// A ServerWithCredential is the status of a server and the state of its credential.
type ServerWithCredential struct {
	drawbridge.ServerStatus
	Credential *drawbridge.CredentialStatus `json:"credential,omitempty"`
	// SignInPending reports whether the process that began the sign-in is still waiting for the browser.
	SignInPending bool `json:"-"`
}

// AnnotateStatuses adds the stored credentials to the statuses of servers. The status of a running process is current.
// If a process has ended, the sign-in that it required may have been completed since.
func (all CredentialStates) AnnotateStatuses(rows []drawbridge.ServerStatus) []ServerWithCredential {
	out := make([]ServerWithCredential, len(rows))
	for i, row := range rows {
		l := ServerWithCredential{ServerStatus: row, SignInPending: row.SignIn != ""}
		c, ok := all[row.Server]
		if c.SignedIn && row.Phase != drawbridge.NeedsSignIn {
			c.URL = "" // no longer needed
		}
		dormant := row.Phase == drawbridge.Idle || row.Phase == drawbridge.Faulted ||
			row.Phase == drawbridge.NeedsSignIn
		switch {
		case !ok:
		case l.SignInPending || !dormant:
			l.Credential = &c
		case c.SignedIn && row.Phase == drawbridge.NeedsSignIn:
			l.Credential, l.Phase = &c, drawbridge.Idle
		case !c.SignedIn && (c.URL != "" || c.Problem != ""):
			l.Credential, l.Phase, l.SignIn = &c, drawbridge.NeedsSignIn, c.URL
		default:
			l.Credential = &c
		}
		out[i] = l
	}
	return out
}

// DescribeCredential returns a short description of the state of a credential.
func DescribeCredential(c drawbridge.CredentialStatus) string {
	switch {
	case c.SignedIn && c.Expires.IsZero() && c.AutoRenews:
		return "signed in, until the server says otherwise; renews itself"
	case c.SignedIn && c.Expires.IsZero():
		return "signed in, until the server says otherwise"
	case c.SignedIn && c.AutoRenews:
		return "signed in until " + c.Expires.Local().Format(time.DateTime) + ", renews itself"
	case c.SignedIn && c.Expires.Before(time.Now()):
		return "the sign-in ended " + c.Expires.Local().Format(time.DateTime)
	case c.SignedIn:
		return "signed in until " + c.Expires.Local().Format(time.DateTime)
	case c.Problem != "":
		return "needs sign-in: " + c.Problem
	case c.URL != "":
		return "needs sign-in"
	}
	return "not signed in"
}

// forbiddenStatusPattern matches the HTTP statuses 401 and 403, but not as part of another number.
var forbiddenStatusPattern = lazyregexp.New(`\b40[13]\b`)

// notFoundStatusPattern matches the HTTP statuses 404 and 410.
var notFoundStatusPattern = lazyregexp.New(`\bstatus (404|410)\b`)

// FaultTip returns the next step for a server that could not be started or reached; empty if none is known.
func FaultTip(fault error) string {
	text := strings.ToLower(fault.Error())
	switch {
	case errors.Is(fault, context.DeadlineExceeded) || strings.Contains(text, "timeout") ||
		strings.Contains(text, "timed out"):
		return "The server may be slow or unresponsive. Try increasing the timeout." +
			" connect_timeout under [mcp] in your drawbridge.toml limits connecting; a server's own timeout limits its calls."
	case IsAuthFailure(fault) || forbiddenStatusPattern().MatchString(text):
		return "Check your authentication credentials."
	case strings.Contains(text, "connection refused"):
		return "Check that the server is running and that its URL is right."
	case notFoundStatusPattern().MatchString(text):
		return "Check that the URL is right: nothing answers there as an MCP server."
	case strings.Contains(text, "not found on path"), strings.Contains(text, `"command" contains spaces`):
		return "" // the text of the fault already names the next step
	case strings.Contains(text, "not found"):
		return "Check that the command is installed and on the PATH."
	}
	return ""
}
