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

// CredentialStates maps servers to the states of their stored credentials.
type CredentialStates map[drawbridge.ServerID]drawbridge.CredentialStatus

// ReadCredentialStates returns the states of the credentials for the servers of these rows. A server is included if its
// row has auth settings, or if it has a stored credential, a pending sign-in or a problem. No request is sent.
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

// CredentialStates opens the sign-in manager and returns the result of ReadCredentialStates for these rows. No request
// is sent. The error is that of Options.OpenVault or of gateway.OpenSignInManager.
func (r *Service) CredentialStates(ctx context.Context, rows []config.Server) (CredentialStates, error) {
	vault, err := r.openVault()
	if err != nil {
		return nil, err
	}
	p, err := gateway.OpenSignInManager(ctx, r.o.Gateway, vault, rows)
	if err != nil {
		return nil, err
	}
	return ReadCredentialStates(p, rows), nil
}

// A CredentialReport is the state of a server's credential with a description, for the command doctor. Standing is the
// result of DescribeCredential.
type CredentialReport struct {
	drawbridge.CredentialStatus
	Standing string `json:"standing"`
	// SignInReason is the reason why the person must sign in; empty if that is not required.
	SignInReason string `json:"needed,omitempty"`
}

// Reports returns a report for each credential, sorted by server name. statuses are the stored statuses of the servers.
// For a server whose status says that it needs a sign-in, there is a report even if it has no credential.
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

// UnconfiguredSignIns returns the names of the sign-ins among entries, the content of the vault, that belong to none of
// the servers in all.
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

// AuthRequiredText returns a sentence for the person about a server that refused a request without a credential. The
// sentence names the type of authentication in the server's row: an API key, OAuth, or unknown.
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

// A ServerWithCredential is the status of a server, and the state of its credential if it has one.
type ServerWithCredential struct {
	drawbridge.ServerStatus
	Credential *drawbridge.CredentialStatus `json:"credential,omitempty"`
	// SignInPending reports whether a running process has begun a sign-in and waits until the person completes it in
	// the browser.
	SignInPending bool `json:"-"`
}

// AnnotateStatuses adds the states of the credentials to the statuses of servers. It also corrects the phases of
// servers that are not running, because their stored status may be outdated. If the person has signed in since, the
// phase becomes Idle. If a sign-in is pending or has failed, the phase becomes NeedsSignIn.
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

// DescribeCredential returns a short text for people about the state of a credential, such as "signed in until
// 2026-01-02 15:04:05".
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

// forbiddenStatusPattern matches the HTTP statuses 401 and 403 in the text of an error, but not as part of a longer
// number.
var forbiddenStatusPattern = lazyregexp.New(`\b40[13]\b`)

// notFoundStatusPattern matches the HTTP statuses 404 and 410 in the text of an error.
var notFoundStatusPattern = lazyregexp.New(`\bstatus (404|410)\b`)

// FaultTip returns a sentence with the next step for the person, for a fault of a server that could not be started or
// reached. It is empty if no tip is known for the fault.
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
