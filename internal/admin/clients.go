package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A Client is a client that may send requests to Drawbridge's HTTP endpoint with its own bearer token.
type Client struct {
	Name   string             `json:"name"`
	Scopes []drawbridge.Scope `json:"scopes"`
	// Origin is the origin of the content that the client writes to the workspace.
	Origin  workspace.Origin `json:"origin"`
	Created time.Time        `json:"created,omitzero"`
	// Expires is the time when the token expires; zero if it does not expire.
	Expires time.Time `json:"expires,omitzero"`
	// Used is the day of the client's last request, in the form "2006-01-02"; empty if there was none.
	Used string `json:"used,omitempty"`
	// Token is set only in the result of AddClient. It cannot be read again, because only its hash is stored.
	Token string `json:"token,omitempty"`
}

// ScopesText returns the scopes of the client, separated by commas.
func (c Client) ScopesText() string {
	words := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// OriginText returns a sentence for people about the origin of the client's content, with a space before it; empty for
// the default.
func (c Client) OriginText() string {
	if c.Origin == workspace.AgentProduced {
		return ""
	}
	return fmt.Sprintf(" What it writes to the workspace is %s.", c.Origin)
}

// ExpiryText returns a text for people with the local time when the token expires.
func (c Client) ExpiryText() string {
	if c.Expires.IsZero() {
		return "without an end"
	}
	return "until " + c.Expires.Local().Format(time.DateTime)
}

// A NewClient is what a person asks for a new client, as texts.
type NewClient struct {
	// Name is the name of the client, and Scopes are its scopes.
	Name   string
	Scopes []string
	// Lifetime is the lifetime of the token, such as "90d" or "12h"; empty means no end.
	Lifetime string
	// Origin is the origin of what the client writes to the workspace: one of ClientOrigins.
	Origin string
}

// ParseNewClient returns a new client for AddClient. It checks everything but the name. The error is a UserError.
func ParseNewClient(n NewClient, now time.Time) (Client, error) {
	c := Client{Name: n.Name, Origin: workspace.Origin(n.Origin)}
	if len(n.Scopes) == 0 {
		return c, UserError("client add takes at least one --scope: mcp:NAME for the server NAME, or 'mcp:*' for all")
	}
	for _, text := range n.Scopes {
		if !isScope(text) {
			return c, userErrorf("%q is not a scope (mcp:NAME is the server NAME, mcp:* all of them, * everything; %s "+
				"are for Drawbridge's own tools, and for its metrics; %s are for the workspace)", text,
				strings.Join(ownToolScopes, ", "), strings.Join(workspaceScopes(), ", "))
		}
		c.Scopes = append(c.Scopes, drawbridge.Scope(text))
	}
	if err := c.checkOrigin(); err != nil || n.Lifetime == "" {
		return c, err
	}
	d, err := parseLifetime(n.Lifetime)
	if err != nil || d <= 0 {
		return c, userErrorf("--expires %s: want a time such as 90d or 12h", n.Lifetime)
	}
	c.Expires = now.Add(d)
	return c, nil
}

// checkOrigin checks that the origin exists, and that the client may declare it. "*" does not let a client write as an
// author: the boundary of the workspace wants a scope that names the workspace.
func (c Client) checkOrigin() error {
	if !c.Origin.Valid() {
		return userErrorf("--origin %q: want one of %s", c.Origin, strings.Join(ClientOrigins(), ", "))
	}
	isAuthor := slices.ContainsFunc(c.Scopes, func(s drawbridge.Scope) bool {
		return strings.HasPrefix(string(s), workspacePrefix) && s.Covers(drawbridge.Scope(workspace.Author))
	})
	if c.Origin == workspace.Authored && !isAuthor {
		return userErrorf("--origin %s: only a client with the scope %s may write as an author (add --scope %s)",
			c.Origin, workspace.Author, workspace.Author)
	}
	return nil
}

// ClientOrigins returns the origins that a client can have, the most trusted first.
func ClientOrigins() []string {
	return []string{string(workspace.Authored), string(workspace.AgentProduced), string(workspace.Imported),
		string(workspace.Observed)}
}

// ownToolScopes are the scopes for Drawbridge's own tools and for its metrics.
var ownToolScopes = []string{"fs:read", "fs:write", "exec", "web", "metrics"}

// workspacePrefix is the prefix of the scopes for the workspace.
const workspacePrefix = "workspace:"

// workspaceScopes returns the scopes for the workspace.
func workspaceScopes() (all []string) {
	for _, c := range workspace.Capabilities() {
		all = append(all, string(c))
	}
	return all
}

// FixedScopes returns the scopes that a client can hold, except those for single servers.
func FixedScopes() []string {
	return slices.Concat([]string{"mcp:*", "*"}, ownToolScopes, workspaceScopes(), []string{workspacePrefix + "*"})
}

// isScope reports whether a text is a valid scope for a client.
func isScope(text string) bool {
	server, ok := strings.CutPrefix(text, "mcp:")
	return slices.Contains(FixedScopes(), text) ||
		ok && drawbridge.ServerID(strings.TrimSuffix(server, "*")).Validate() == nil
}

// parseLifetime parses a duration. Unlike time.ParseDuration it accepts days, such as "90d".
func parseLifetime(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// AddClient stores a new client, and returns it with its new token, which cannot be read again later. first reports
// whether this is the first client. When there is a client, every HTTP request needs a token.
func (r *Service) AddClient(ctx context.Context, c Client) (added Client, first bool, err error) {
	db, err := r.openStoreOfSettings(ctx, true)
	if err != nil {
		return c, false, err
	}
	defer db.Close()
	others, err := db.HasClients(ctx)
	if err != nil {
		return c, false, err
	}
	token, hash := gateway.NewClientToken()
	act := gateway.AdminAction{Command: "client add", Subject: c.Name,
		Detail: c.ScopesText() + ", " + c.ExpiryText() + ", origin " + string(c.Origin)}
	err = r.recordAction(act, func() error {
		return db.AddClient(ctx, store.Client{Name: c.Name, Scopes: c.Scopes, Origin: c.Origin, Expires: c.Expires}, hash)
	})
	if err != nil {
		return c, false, err
	}
	c.Token = token.Reveal()
	return c, !others, nil
}

// Clients returns the stored clients, sorted by name. The slice is never nil.
func (r *Service) Clients(ctx context.Context) ([]Client, error) {
	all := []Client{}
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil || db == nil {
		return all, err
	}
	defer db.Close()
	kept, err := db.Clients(ctx)
	for _, c := range kept {
		one := Client{Name: c.Name, Scopes: c.Scopes, Origin: c.Origin, Created: c.Created, Expires: c.Expires}
		if !c.Used.IsZero() {
			one.Used = c.Used.Format(time.DateOnly)
		}
		all = append(all, one)
	}
	return all, err
}

// RemoveClient removes a client and its token from the store. Running HTTP endpoints refuse the token after their next
// reload.
func (r *Service) RemoveClient(ctx context.Context, name string) error {
	unknown := fmt.Errorf("client %q not found (drawbridge client list lists them)", name)
	db, err := r.openStoreOfSettings(ctx, false)
	switch {
	case err != nil:
		return err
	case db == nil:
		return unknown
	}
	defer db.Close()
	return r.recordAction(gateway.AdminAction{Command: "client remove", Subject: name}, func() error {
		removed, err := db.RemoveClient(ctx, name)
		if err == nil && !removed {
			return unknown
		}
		return err
	})
}
