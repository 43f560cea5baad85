package transport

import (
	"context"
	"net/http"
)

// A TokenSource supplies the access tokens for a server.
type TokenSource interface {
	// Token returns the token to send; empty for none. With an error nothing is sent.
	Token(ctx context.Context) (string, error)

	// ReplaceToken handles status 401 or 403 for the token used, which may be empty. It returns another token for one
	// more try. With an empty one, the refusal stands. An error replaces the refusal.
	ReplaceToken(ctx context.Context, used string, status int, header http.Header,
		body []byte) (another string, err error)
}
