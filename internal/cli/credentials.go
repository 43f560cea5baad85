package cli

import (
	"io"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// printSignInState prints the next step for a server that requires a sign-in, or how long the credential is valid.
func printSignInState(w io.Writer, l admin.ServerWithCredential) {
	c := l.Credential
	if l.Phase != drawbridge.NeedsSignIn {
		if c != nil && (c.SignedIn || c.Problem != "") {
			safetext.Fprintf(w, "  %s\n", admin.DescribeCredential(*c))
		}
		return
	}
	why := ""
	if c != nil && c.Problem != "" {
		why = " (" + c.Problem + ")"
	}
	safetext.Fprintf(w, "  it needs a sign-in%s: drawbridge mcp auth %s\n", why, l.Server)
	printSignInURL(w, l.Server, l.SignIn, l.SignInPending)
}

// printSignInURL prints the address of a sign-in that has begun; it prints nothing for an empty address. open reports
// whether a process waits for the result of the sign-in. If none waits, printSignInURL also prints the command that
// completes the sign-in.
func printSignInURL(w io.Writer, id drawbridge.ServerID, address string, open bool) {
	switch {
	case address == "":
	case open:
		safetext.Fprintf(w, "  or open %s\n", address)
	default:
		safetext.Fprintf(w,
			"  or open %s\n  and pass the last address of the browser to drawbridge mcp auth %s --code -\n",
			address, id)
	}
}
