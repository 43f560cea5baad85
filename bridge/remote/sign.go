package remote

import (
	"context"
	"net/http"
)

// A Signer has the right to speak to a server, as a bearer's token.
type Signer interface {
	// Token gives the token to send; empty for none. With an error nothing is sent.
	Token(ctx context.Context) (string, error)

	// Refused is told of a status 401 or 403 for the token used, which may be empty, and gives another one to try once more
	// with. An empty one says that it cannot help: then the refusal stands. An error takes the refusal's place.
	Refused(ctx context.Context, used string, status int, header http.Header, body []byte) (another string, err error)
}
