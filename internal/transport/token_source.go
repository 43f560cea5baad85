package transport

import (
	"context"
	"net/http"
)

// A TokenSource supplies the access tokens for a server.
type TokenSource interface {
	// Token returns the access token to send; "" sends none. If it returns an error, the request is not sent.
	Token(ctx context.Context) (string, error)

	// ReplaceToken is called after the server has refused a request with status 401 or 403. used is the token of that
	// request, which may be empty. ReplaceToken returns another token, with which the request is sent once more. If it
	// returns "", the caller gets the refusal. If it returns an error, the caller gets that error instead of the
	// refusal.
	ReplaceToken(ctx context.Context, used string, status int, header http.Header,
		body []byte) (another string, err error)
}
