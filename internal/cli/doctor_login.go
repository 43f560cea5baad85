package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/doctor"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/login"
)

// A kept credential is one with what it comes to, as the doctor says it.
type kept struct {
	drawbridge.Credential
	Standing string `json:"standing"`
}

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
	for _, s := range statuses {
		if _, known := all[s.Server]; !known && s.Phase == drawbridge.NeedsSignIn {
			all[s.Server] = drawbridge.Credential{Server: s.Server}
		}
	}
	if len(all) > 0 {
		c.Vault = v.Where()
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		one := all[id]
		c.Credentials = append(c.Credentials, kept{one, login.Standing(one)})
		row, _ := set.Lookup(id)
		if row.Phase == drawbridge.Idle && !one.Signed && (one.URL != "" || one.Trouble != "" || needsOne(statuses, id)) {
			text := strings.TrimPrefix(login.Standing(one), "needs sign-in: ")
			if one.Trouble == "" {
				text = "nobody is signed in"
			}
			c.Problem(doctor.Finding{
				About: fmt.Sprintf("server %q", id), Source: row.Origin.String(), Text: "it needs a sign-in: " + text, Fix: "drawbridge mcp auth " + string(id),
			})
		}
	}
	a.strayCredentials(c, all)
}

func needsOne(statuses []drawbridge.Status, id drawbridge.ServerID) bool {
	return slices.ContainsFunc(statuses, func(s drawbridge.Status) bool { return s.Server == id && s.Phase == drawbridge.NeedsSignIn })
}

// strayCredentials names what is kept of sign-ins at servers that are not configured here; they may be another project's.
func (a *app) strayCredentials(c *checkup, all map[drawbridge.ServerID]drawbridge.Credential) {
	v, err := a.vault()
	if err != nil {
		return // it was said
	}
	entries, err := v.List()
	if err != nil {
		c.Problem(findingOf("the vault", err))
	}
	var stray []string
	for _, e := range entries {
		ours := slices.ContainsFunc(slices.Collect(maps.Values(all)), func(one drawbridge.Credential) bool { return one.Name == e.Name })
		if name, ok := strings.CutPrefix(e.Name, "signin/"); ok && !ours {
			stray = append(stray, name)
		}
	}
	if len(stray) > 0 {
		c.Note(doctor.Finding{About: "the vault", Text: "it has sign-ins at servers that are not configured here: " + names(stray, 4)})
	}
}

func (a *app) printCredentials(c *checkup) {
	for _, one := range c.Credentials {
		fmt.Fprintf(a.Out, "server %q: %s", one.Server, one.Standing)
		if one.Signed && one.Issuer != "" {
			fmt.Fprintf(a.Out, ", with %s", one.Issuer)
		}
		fmt.Fprintln(a.Out)
	}
	if c.Vault != "" {
		fmt.Fprintln(a.Out, c.Vault)
	}
}
