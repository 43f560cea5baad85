package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/spf13/cobra"
)

// A grantFlags is what a yes is for, as flags say it.
type grantFlags struct {
	duration              time.Duration
	session, anyArguments bool
	always                bool
}

// maxSessionGrant is how long a session's grant lasts, should the session last longer.
const maxSessionGrant = 24 * time.Hour

// newGrant gives what is granted beyond the one call, and for how long; nil for nothing.
func (s grantFlags) newGrant(a store.PendingApproval) (*store.Grant, time.Duration, error) {
	switch {
	case s.duration < 0:
		return nil, 0, admin.UserError("--for wants a time such as 10m or 2h")
	case s.always && (s.duration > 0 || s.session || s.anyArguments):
		return nil, 0, admin.UserError("--always-this is for this very call; leave the other flags out")
	case s.anyArguments && s.duration == 0 && !s.session:
		return nil, 0, admin.UserError("--any-arguments needs an end: --for TIME or --session")
	case s.session && a.Session == "":
		return nil, 0, errors.New("the caller has no session (--for TIME grants it for a time)")
	case !s.always && !s.session && s.duration == 0:
		return nil, 0, nil
	}
	kept, err := grantDetails(a)
	if err != nil {
		return nil, 0, err
	}
	g := &store.Grant{Subject: a.Call, Shown: kept}
	if s.anyArguments {
		g.Subject, g.ForCard = a.Card, true
	}
	if s.session {
		g.Session = a.Session
		if s.duration == 0 {
			s.duration = maxSessionGrant
		}
	}
	return g, s.duration, nil
}

// grantDetails gives what a grant keeps of what a person was shown.
func grantDetails(a store.PendingApproval) ([]byte, error) {
	var shown gateway.ApprovalDetails
	if err := json.Unmarshal(a.Shown, &shown); err != nil {
		return nil, fmt.Errorf("read the call %s: what the store has of it is damaged", a.ID)
	}
	return shown.RedactedJSON()
}

func (d askCommands) allowCommand() *cobra.Command {
	var s grantFlags
	cmd := &cobra.Command{
		Use:   "allow ID",
		Short: "Let a call go on that waits, once",
		Long: `Let a call go on that waits, once: the next time it waits again, also with the same arguments.

Flags grant more: the same call again, by the same caller, with the same arguments, of the
tool as it is defined now. With --any-arguments it is the tool, whatever it is called with.`,
		Example: `  drawbridge ask allow k3f9qzab
  drawbridge ask allow k3f9qzab --for 10m
  drawbridge ask allow k3f9qzab --session --any-arguments`,
		Args: exactArgs(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && s.duration == 0 {
				s.duration = -1
			}
			return d.withStore(cmd.Context(), func(db *store.DB) error {
				if _, _, err := s.newGrant(store.PendingApproval{Session: "any", Shown: []byte("{}")}); err != nil {
					return err // a mistake on the command line, whatever waits
				}
				a, p, err := findPendingCall(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				grant, lasts, err := s.newGrant(a)
				if err != nil {
					return err
				}
				return d.answerCall(cmd.Context(), db, p, store.AnswerAllowed, grant, lasts)
			})
		},
	}
	cmd.Flags().DurationVar(&s.duration, "for", 0, "allow the same call again for a `TIME` such as 10m")
	cmd.Flags().BoolVar(&s.session, "session", false,
		"allow the same call again until the caller's session ends, 24h at most")
	cmd.Flags().BoolVar(&s.always, "always-this", false, "allow the same call again, until you take that back")
	cmd.Flags().BoolVar(&s.anyArguments, "any-arguments", false,
		"with --for or --session: the tool, with any arguments")
	return cmd
}

// grantJSON is a grant as --json shows it.
type grantJSON struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Until is absent where it has no end.
	Until time.Time `json:"until,omitzero"`
	// Session says that it ends with the caller's session, AnyArguments that it is for the tool with any arguments;
	// then those of Call were only the first.
	Session      bool                    `json:"session"`
	AnyArguments bool                    `json:"anyArguments"`
	Uses         int                     `json:"uses"`
	Call         gateway.ApprovalDetails `json:"call"`
}

func newGrantJSON(g store.Grant) (grantJSON, error) {
	out := grantJSON{ID: g.ID, Created: g.Created, Until: g.Until, Session: g.Session != "",
		AnyArguments: g.ForCard, Uses: g.Uses}
	if err := json.Unmarshal(g.Shown, &out.Call); err != nil {
		return out, fmt.Errorf("read the grant %s: what the store has of it is damaged", g.ID)
	}
	return out, nil
}

func (g grantJSON) scopeColumns() string {
	with, ends := formatJSONLine(g.Call.Arguments, 40), "for ever"
	if g.AnyArguments {
		with = "any arguments"
	}
	if !g.Until.IsZero() {
		ends = "until " + formatLocalTime(g.Until)
	}
	if g.Session {
		ends += ", in its session"
	}
	return with + "\t" + ends
}

func (d askCommands) grantsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Show what you allowed for more than one call",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.withStore(cmd.Context(), func(db *store.DB) error {
				var all []grantJSON
				if db != nil {
					kept, err := db.Grants(cmd.Context())
					if err != nil {
						return err
					}
					for _, g := range kept {
						one, err := newGrantJSON(g)
						if err != nil {
							return err
						}
						all = append(all, one)
					}
				}
				return listPrinter[grantJSON]{
					Header:    "ID\tCALLER\tCALLS\tWITH\tCOUNTS\tUSED",
					EmptyText: "You allowed nothing for more than one call.",
					Columns: func(g grantJSON) string {
						return fmt.Sprintf("%s\t%s\t%s\t%s\t%d", g.ID, truncateEscaped(g.Call.Caller, 20),
							truncateEscaped(g.Call.Card, 40), g.scopeColumns(), g.Uses)
					},
				}.print(d.Out, d.Err, all, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d askCommands) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Take back what you allowed for more than one call",
		Args:  exactArgs(1, "the ID of one grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withStore(cmd.Context(), func(db *store.DB) error {
				none := fmt.Errorf("there is no grant %s (drawbridge ask grants lists them)",
					truncateEscaped(args[0], 20))
				if db == nil {
					return none
				}
				err := d.AdminRecorder.Run(gateway.AdminAction{Command: "ask revoke", Detail: args[0]}, func() error {
					revoked, err := db.RevokeGrant(cmd.Context(), args[0])
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
