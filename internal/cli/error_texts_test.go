package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSentencesThatPeopleKnow holds the sentences of the systems that the program follows (seed 001, section 6, and
// what its original says of signing in): each stands in the program as people and scripts know it, at the place named.
func TestSentencesThatPeopleKnow(t *testing.T) {
	for _, tt := range []struct{ sentence, place string }{
		// Adding and updating.
		{`Invalid server config: `, "config/edit_servers.go"},
		{`Server %q already exists in %s`, "config/edit_servers.go"},
		{`Server %q already exists in %s`, "internal/admin/addwizard.go"},
		{`Use either --url or -- <command...>, not both.`, "internal/admin/addflags.go"},
		{`--token requires --url (HTTP/SSE transport).`, "internal/admin/addflags.go"},
		// Connecting and testing.
		{`Failed to connect to %q: %`, "internal/cli/cmd_mcp.go"},
		{`Failed to connect to %q: %`, "internal/admin/signin.go"},
		{`The server may be slow or unresponsive. Try increasing the timeout.`, "internal/admin/credentials.go"},
		{`Check your authentication credentials.`, "internal/admin/credentials.go"},
		{`Server requires API key authentication.`, "internal/admin/credentials.go"},
		{`Server requires authentication but type could not be determined.`, "internal/admin/credentials.go"},
		{`Server %q is disabled. Run %s enable %s first.`, "internal/admin/change.go"},
		// Signing in.
		{`Server requires OAuth authentication. Launching authorization flow...`, "internal/admin/signin.go"},
		{`Authentication required for %q, but OAuth endpoints could not be discovered.`, "internal/admin/signin.go"},
		{`Could not discover OAuth endpoints from server response.`, "internal/admin/signin.go"},
		{`Server connection succeeded without OAuth; reauthorization is not required.`, "internal/admin/signin.go"},
		{`OAuth flow failed for %q: %`, "internal/admin/signin.go"},
		{`OAuth flow timed out. Please try again.`, "internal/admin/signin.go"},
		{`OAuth flow timed out. Please try again.`, "internal/oauth/errors.go"},
		{`OAuth authentication failed: `, "internal/oauth/errors.go"},
		{`OAuth authorization failed. Please check your client credentials.`, "internal/oauth/errors.go"},
		{`OAuth authorization code is invalid or expired. Please try again.`, "internal/oauth/errors.go"},
		{`Could not connect to OAuth server. Please check the URLs and your network connection.`,
			"internal/oauth/errors.go"},
		{`Invalid OAuth URLs. Please check:`, "internal/oauth/discover.go"},
		{`OAuth provider requires client_id`, "internal/oauth/register.go"},
		{`OAuth callback port %d unavailable; cannot fall back to a random port when oauth.redirectUri is set`,
			"internal/oauth/callback_server.go"},
		{`Token exchange failed: %`, "internal/oauth/flow.go"},
		{`MCP OAuth refresh failed: %d %`, "internal/oauth/renew.go"},
		{`State mismatch - possible CSRF attack`, "internal/oauth/flow.go"},
		{`State mismatch - possible CSRF attack`, "internal/oauth/callback_server.go"},
		{`Missing authorization code`, "internal/oauth/flow.go"},
		{`Authorization failed: %`, "internal/oauth/flow.go"},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(tt.place)))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), tt.sentence) {
			t.Errorf("%s does not say %q", tt.place, tt.sentence)
		}
	}
}
