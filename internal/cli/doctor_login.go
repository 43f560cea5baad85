package cli

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/doctor"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// examineCredentials says how we stand with each server that wants to know who asks, and what keeps that. No server is asked,
// and none is started.
func (a *app) examineCredentials(c *checkup, set config.Set, statuses []drawbridge.Status) {
	v, err := a.vault()
	if err != nil {
		c.Problem(findingOf("the vault", err))
		return
	}
	all, err := a.credentials(set.Servers)
	if err != nil {
		c.Problem(findingOf("the vault", err))
		return
	}
	if c.Credentials = all.Kept(statuses); len(c.Credentials) > 0 {
		c.Vault = v.Where()
	}
	for _, one := range c.Credentials {
		if row, _ := set.Lookup(one.Server); row.Phase == drawbridge.Idle && one.Needed != "" {
			c.Problem(doctor.Finding{
				About: fmt.Sprintf("server %q", row.ID), Source: row.Origin.String(),
				Text: "it needs a sign-in: " + one.Needed, Fix: "drawbridge mcp auth " + string(row.ID),
			})
		}
	}
	entries, err := v.List()
	if err != nil {
		c.Problem(findingOf("the vault", err))
	}
	if strays := all.Strays(entries); len(strays) > 0 { // they may be another project's
		c.Note(doctor.Finding{About: "the vault", Text: "it has sign-ins at servers that are not configured here: " + manners.Names(strays, 4)})
	}
}

func (a *app) printCredentials(c *checkup) {
	for _, one := range c.Credentials {
		with := ""
		if one.Signed && one.Issuer != "" {
			with = ", with " + one.Issuer
		}
		safetext.Fprintf(a.Out, "server %q: %s%s\n", one.Server, one.Standing, with)
	}
	if c.Vault != "" {
		safetext.Fprintln(a.Out, c.Vault)
	}
}
