package transport

import (
	"context"
	"net/http"
)

// A TokenSource has the right to speak to a server, as a bearer's token.
type TokenSource interface {
	// Token gives the token to send; empty for none. With an error nothing is sent.
	Token(ctx context.Context) (string, error)

	// ReplaceToken is told of a status 401 or 403 for the token used, which may be empty, and gives another one to try
	// once more with. An empty one says that it cannot help: then the refusal stands. An error takes the refusal's
	// place.
	ReplaceToken(ctx context.Context, used string, status int, header http.Header,
		body []byte) (another string, err error)
}
