package asks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

// A scope is what a yes is for, as flags say it.
type scope struct {
	lasts        time.Duration
	session, any bool
	always       bool
}

// mostSession is how long a session's grant lasts, should the session last longer.
const mostSession = 24 * time.Hour

// grant gives what is granted beyond the one call, and for how long; nil for nothing.
func (s scope) grant(a store.Ask) (*store.Grant, time.Duration, error) {
	switch {
	case s.lasts < 0:
		return nil, 0, roster.Mistake("--for wants a time such as 10m or 2h")
	case s.always && (s.lasts > 0 || s.session || s.any):
		return nil, 0, roster.Mistake("--always-this is for this very call; leave the other flags out")
	case s.any && s.lasts == 0 && !s.session:
		return nil, 0, roster.Mistake("--any-arguments needs an end: --for TIME or --session")
	case s.session && a.Session == "":
		return nil, 0, errors.New("the caller has no session (--for TIME grants it for a time)")
	case !s.always && !s.session && s.lasts == 0:
		return nil, 0, nil
	}
	kept, err := keptOf(a)
	if err != nil {
		return nil, 0, err
	}
	g := &store.Grant{Subject: a.Call, Shown: kept}
	if s.any {
		g.Subject, g.ForCard = a.Card, true
	}
	if s.session {
		g.Session = a.Session
		if s.lasts == 0 {
			s.lasts = mostSession
		}
	}
	return g, s.lasts, nil
}

// keptOf gives what a grant keeps of what a person was shown.
func keptOf(a store.Ask) ([]byte, error) {
	var shown gateway.AskDetails
	if err := json.Unmarshal(a.Shown, &shown); err != nil {
		return nil, fmt.Errorf("read the call %s: what the store has of it is damaged", a.ID)
	}
	return shown.Kept()
}

func (d Desk) allow() *cobra.Command {
	var s scope
	cmd := &cobra.Command{
		Use:   "allow ID",
		Short: "Let a call go on that waits, once",
		Long: `Let a call go on that waits, once: the next time it waits again, also with the same arguments.

Flags grant more: the same call again, by the same caller, with the same arguments, of the
tool as it is defined now. With --any-arguments it is the tool, whatever it is called with.`,
		Example: `  drawbridge ask allow k3f9qzab
  drawbridge ask allow k3f9qzab --for 10m
  drawbridge ask allow k3f9qzab --session --any-arguments`,
		Args: manners.Exactly(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && s.lasts == 0 {
				s.lasts = -1
			}
			return d.with(cmd.Context(), func(db *store.DB) error {
				if _, _, err := s.grant(store.Ask{Session: "any", Shown: []byte("{}")}); err != nil {
					return err // a mistake on the command line, whatever waits
				}
				a, p, err := find(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				grant, lasts, err := s.grant(a)
				if err != nil {
					return err
				}
				return d.answer(cmd.Context(), db, p, store.Allowed, grant, lasts)
			})
		},
	}
	cmd.Flags().DurationVar(&s.lasts, "for", 0, "allow the same call again for a `TIME` such as 10m")
	cmd.Flags().BoolVar(&s.session, "session", false, "allow the same call again until the caller's session ends, 24h at most")
	cmd.Flags().BoolVar(&s.always, "always-this", false, "allow the same call again, until you take that back")
	cmd.Flags().BoolVar(&s.any, "any-arguments", false, "with --for or --session: the tool, with any arguments")
	return cmd
}

// granted is a grant as --json shows it.
type granted struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Until is absent where it has no end.
	Until time.Time `json:"until,omitzero"`
	// Session says that it ends with the caller's session, AnyArguments that it is for the tool with any arguments; then
	// those of Call were only the first.
	Session      bool               `json:"session"`
	AnyArguments bool               `json:"anyArguments"`
	Uses         int                `json:"uses"`
	Call         gateway.AskDetails `json:"call"`
}

func grantedOf(g store.Grant) (granted, error) {
	out := granted{ID: g.ID, Created: g.Created, Until: g.Until, Session: g.Session != "", AnyArguments: g.ForCard, Uses: g.Uses}
	if err := json.Unmarshal(g.Shown, &out.Call); err != nil {
		return out, fmt.Errorf("read the grant %s: what the store has of it is damaged", g.ID)
	}
	return out, nil
}

func (g granted) scope() string {
	with, ends := line(g.Call.Arguments, 40), "for ever"
	if g.AnyArguments {
		with = "any arguments"
	}
	if !g.Until.IsZero() {
		ends = "until " + manners.LocalTime(g.Until)
	}
	if g.Session {
		ends += ", in its session"
	}
	return with + "\t" + ends
}

func (d Desk) grants() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Show what you allowed for more than one call",
		Args:  manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.with(cmd.Context(), func(db *store.DB) error {
				var all []granted
				if db != nil {
					kept, err := db.Grants(cmd.Context())
					if err != nil {
						return err
					}
					for _, g := range kept {
						one, err := grantedOf(g)
						if err != nil {
							return err
						}
						all = append(all, one)
					}
				}
				return manners.List[granted]{
					Head: "ID\tCALLER\tCALLS\tWITH\tCOUNTS\tUSED", None: "You allowed nothing for more than one call.",
					Line: func(g granted) string {
						return fmt.Sprintf("%s\t%s\t%s\t%s\t%d", g.ID, plain(g.Call.Caller, 20), plain(g.Call.Card, 40), g.scope(), g.Uses)
					},
				}.Print(d.Out, d.Err, all, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d Desk) revoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Take back what you allowed for more than one call",
		Args:  manners.Exactly(1, "the ID of one grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.with(cmd.Context(), func(db *store.DB) error {
				none := fmt.Errorf("there is no grant %s (drawbridge ask grants lists them)", plain(args[0], 20))
				if db == nil {
					return none
				}
				err := d.Clerk.Do(gateway.Act{Command: "ask revoke", Detail: args[0]}, func() error {
					revoked, err := db.Revoke(cmd.Context(), args[0])
					if err == nil && !revoked {
						return none
					}
					return err
				})
				if err != nil {
					return err
				}
				_, err = safetext.Fprintln(d.Out, "Revoked", args[0])
				return err
			})
		},
	}
}
