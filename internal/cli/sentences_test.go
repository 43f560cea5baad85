package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSentencesThatPeopleKnow holds the sentences of the systems that the program follows (seed 001, section 6, and what its
// original says of signing in): each stands in the program as people and scripts know it, at the place named.
func TestSentencesThatPeopleKnow(t *testing.T) {
	for _, tt := range []struct{ sentence, place string }{
		// Adding and updating.
		{`Invalid server config: `, "config/write_rows.go"},
		{`Server %q already exists in %s`, "config/write_rows.go"},
		{`Server %q already exists in %s`, "roster/wizard.go"},
		{`Use either --url or -- <command...>, not both.`, "roster/words.go"},
		{`--token requires --url (HTTP/SSE transport).`, "roster/words.go"},
		// Connecting and testing.
		{`Failed to connect to %q: %`, "internal/cli/mcp.go"},
		{`Failed to connect to %q: %`, "roster/signin.go"},
		{`The server may be slow or unresponsive. Try increasing the timeout.`, "internal/cli/login/standing.go"},
		{`Check your authentication credentials.`, "internal/cli/login/standing.go"},
		{`Server requires API key authentication.`, "internal/cli/login/standing.go"},
		{`Server requires authentication but type could not be determined.`, "internal/cli/login/standing.go"},
		{`Server %q is disabled. Run %s enable %s first.`, "roster/change.go"},
		// Signing in.
		{`Server requires OAuth authentication. Launching authorization flow...`, "roster/signin.go"},
		{`Authentication required for %q, but OAuth endpoints could not be discovered.`, "roster/signin.go"},
		{`Could not discover OAuth endpoints from server response.`, "roster/signin.go"},
		{`Server connection succeeded without OAuth; reauthorization is not required.`, "roster/signin.go"},
		{`OAuth flow failed for %q: %`, "roster/signin.go"},
		{`OAuth flow timed out. Please try again.`, "roster/signin.go"},
		{`OAuth flow timed out. Please try again.`, "bridge/signin/errors.go"},
		{`OAuth authentication failed: `, "bridge/signin/errors.go"},
		{`OAuth authorization failed. Please check your client credentials.`, "bridge/signin/errors.go"},
		{`OAuth authorization code is invalid or expired. Please try again.`, "bridge/signin/errors.go"},
		{`Could not connect to OAuth server. Please check the URLs and your network connection.`, "bridge/signin/errors.go"},
		{`Invalid OAuth URLs. Please check:`, "bridge/signin/discover.go"},
		{`OAuth provider requires client_id`, "bridge/signin/register.go"},
		{`OAuth callback port %d unavailable; cannot fall back to a random port when oauth.redirectUri is set`, "bridge/signin/lobby.go"},
		{`Token exchange failed: %`, "bridge/signin/flow.go"},
		{`MCP OAuth refresh failed: %d %`, "bridge/signin/renew.go"},
		{`State mismatch - possible CSRF attack`, "bridge/signin/flow.go"},
		{`State mismatch - possible CSRF attack`, "bridge/signin/lobby.go"},
		{`Missing authorization code`, "bridge/signin/flow.go"},
		{`Authorization failed: %`, "bridge/signin/flow.go"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(tt.place)))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), tt.sentence) {
			t.Errorf("%s does not say %q", tt.place, tt.sentence)
		}
	}
}
