package cli

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// examineCredentials adds the states of the vault and of each server's credential, and a problem for each server that
// needs a sign-in. It starts no server and sends no request.
func (a *app) examineCredentials(ctx context.Context, c *doctorOutput, set config.Configuration,
	statuses []drawbridge.ServerStatus) {
	v, err := a.openVault()
	if err != nil {
		c.AddProblem(errorFinding("the vault", err))
		return
	}
	all, err := a.adminService().CredentialStates(ctx, set.Servers)
	if err != nil {
		c.AddProblem(errorFinding("the vault", err))
		return
	}
	if c.Credentials = all.Reports(statuses); len(c.Credentials) > 0 {
		c.Vault = v.DescribeProtection()
	}
	for _, one := range c.Credentials {
		if row, _ := set.Lookup(one.Server); row.Phase == drawbridge.Idle && one.SignInReason != "" {
			c.AddProblem(admin.Finding{
				About: fmt.Sprintf("server %q", row.ID), Source: row.Origin.String(),
				Text: "it needs a sign-in: " + one.SignInReason, Fix: signInAdvice(set.Servers, row),
			})
		}
	}
	entries, err := v.List()
	if err != nil {
		c.AddProblem(errorFinding("the vault", err))
	}
	if strays := all.UnconfiguredSignIns(entries); len(strays) > 0 { // another project may use them
		c.AddNote(admin.Finding{About: "the vault", Text: "it has sign-ins at servers that are not configured here: " +
			joinFirst(strays, 4)})
	}
}

// signInAdvice returns the command that signs in for a server. A stdio server may use the credential of another server,
// which has the same credential ID and can sign in. The command then names that other server. The result is empty if
// there is no such server.
func signInAdvice(rows []config.Server, row config.Server) string {
	auth := row.Auth
	if auth == nil || row.URL != "" || auth.Issuer != "" || auth.TokenURL != "" || auth.CredentialID == "" {
		return "drawbridge mcp auth " + string(row.ID)
	}
	for _, other := range rows {
		a := other.Auth
		if other.Phase != drawbridge.Idle || a == nil || a.Type == "apikey" || a.Type == "none" {
			continue
		}
		signsIn := other.URL != "" || a.Issuer != "" || a.TokenURL != ""
		if signsIn && a.CredentialID == auth.CredentialID {
			return "drawbridge mcp auth " + string(other.ID)
		}
	}
	return ""
}

func (a *app) printCredentials(c *doctorOutput) {
	for _, one := range c.Credentials {
		with := ""
		if one.SignedIn && one.Issuer != "" {
			with = ", with " + one.Issuer
		}
		safetext.Fprintf(a.Out, "server %q: %s%s\n", one.Server, one.Standing, with)
	}
	if c.Vault != "" {
		safetext.Fprintln(a.Out, c.Vault)
	}
}
