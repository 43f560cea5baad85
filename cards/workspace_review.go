package cards

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

type reviewListInput struct {
	Kind   string `json:"kind,omitempty" jsonschema:"candidates, deviations or flags; candidates if absent."`
	Offset int    `json:"offset,omitempty" jsonschema:"How many entries to leave out at the beginning."`
}

type reviewListOutput struct {
	Candidates []workspace.Revision  `json:"candidates,omitempty"`
	Deviations []workspace.Deviation `json:"deviations,omitempty"`
	Flags      []workspace.Flag      `json:"flags,omitempty"`
}

type promoteInput struct {
	Revision string `json:"revision" jsonschema:"The revision to accept."`
	Over     string `json:"over,omitempty" jsonschema:"If the content has changed since: the current revision, which you have seen."`
}

type rejectInput struct {
	Revision string `json:"revision" jsonschema:"The revision to reject."`
}

type revalidateInput struct {
	Entity string `json:"entity" jsonschema:"The ID of the object that you have looked at."`
}

type grantInput struct {
	Principal    string   `json:"principal" jsonschema:"A principal, or kind:agent or kind:client for all of them."`
	Capabilities []string `json:"capabilities" jsonschema:"All scopes that the principal may hold; an empty list takes all away."`
}

type accessOutput struct {
	Actor     string                            `json:"actor"`
	Principal string                            `json:"principal"`
	Held      []workspace.Capability            `json:"held"`
	Grants    map[string][]workspace.Capability `json:"grants"`
}

// reviewCards returns the cards with which people decide about content, and those about rights.
func reviewCards(w Workspace) []drawbridge.Card {
	author, review := []drawbridge.Scope{scopeAuthor}, &drawbridge.Crossing{Write: "review"}
	return []drawbridge.Card{
		newShipped(Description[reviewListInput]{Name: "review_list", Title: "List what waits", Scopes: []drawbridge.Scope{scopeRead},
			Text: "List what waits for a person.\n\nCandidates are contents that no person has accepted, deviations disagree with accepted content, " +
				"and flags name objects whose sources have changed. The flagged object that most is derived from comes first.",
			Examples: []reviewListInput{{}, {Kind: "flags"}},
		}, func(ctx context.Context, call drawbridge.Call, in reviewListInput) (Answer[reviewListOutput], error) {
			return listReview(ctx, w, call, in)
		}),
		newWriting(Description[promoteInput]{Name: "review_promote", Title: "Accept a revision", Scopes: author, Crossing: review, NotForScripts: true,
			Annotations: &Annotations{Idempotent: true}, Examples: []promoteInput{{Revision: "bk_01K…"}},
			Text: "Accept a revision: it becomes canonical. Only a person of the workspace can do this.",
		}, func(_ context.Context, _ drawbridge.Call, in promoteInput) (prepared[receiptOutput], error) {
			return written("", workspace.Promote{Revision: workspace.ID(in.Revision), Over: workspace.ID(in.Over)}), nil
		}),
		newWriting(Description[rejectInput]{Name: "review_reject", Title: "Reject a revision", Scopes: author, Crossing: review, NotForScripts: true,
			Annotations: &Annotations{Destructive: true, Idempotent: true}, Examples: []rejectInput{{Revision: "bk_01K…"}},
			Text: "Reject a revision that is not canonical: it is retired. Only a person of the workspace can do this.",
		}, func(_ context.Context, _ drawbridge.Call, in rejectInput) (prepared[receiptOutput], error) {
			return written("", workspace.Reject{Revision: workspace.ID(in.Revision)}), nil
		}),
		newWriting(Description[revalidateInput]{Name: "review_revalidate", Title: "Mark as looked at", Scopes: author, Crossing: review,
			NotForScripts: true, Annotations: &Annotations{Idempotent: true}, Examples: []revalidateInput{{Entity: "bk_01K…"}},
			Text: "Say that you have looked at an object whose sources have changed. Only a person of the workspace can do this.",
		}, func(_ context.Context, _ drawbridge.Call, in revalidateInput) (prepared[receiptOutput], error) {
			return written("", workspace.Revalidate{Entity: workspace.ID(in.Entity)}), nil
		}),
		newShipped(Description[workspaceInput]{Name: "workspace_access", Title: "Check permissions", Scopes: []drawbridge.Scope{scopeRead},
			Text: "Show which scopes you hold in the workspace, and who was granted fewer scopes than usual.", Examples: []workspaceInput{{}},
		}, func(ctx context.Context, call drawbridge.Call, _ workspaceInput) (answer Answer[accessOutput], err error) {
			_, actor, err := w.Access(ctx, call)
			if err != nil {
				return answer, err
			}
			grants, err := w.Grants(ctx, call)
			if grants == nil {
				grants = map[string][]workspace.Capability{}
			}
			answer.Value = accessOutput{actor.Kind.String(), actor.Principal, orEmpty(actor.Capabilities), grants}
			answer.Text = fmt.Sprintf("You act as %s (%s) and hold %s.", actor.Kind, actor.Principal, join(actor.Capabilities))
			for principal, held := range grants {
				answer.Text += fmt.Sprintf("\n%s may hold only: %s", principal, join(held))
			}
			return answer, err
		}),
		newWriting(Description[grantInput]{Name: "workspace_grant", Title: "Grant permissions", Scopes: []drawbridge.Scope{scopeManage},
			Crossing: &drawbridge.Crossing{Write: "permission"}, NotForScripts: true,
			Annotations: &Annotations{Destructive: true, Idempotent: true},
			Examples:    []grantInput{{Principal: "client:notes", Capabilities: []string{string(workspace.Read)}}},
			Text:        "Set which scopes a principal may hold in the workspace, in place of an earlier grant. Only a person of the workspace can do this.",
		}, func(_ context.Context, _ drawbridge.Call, in grantInput) (prepared[receiptOutput], error) {
			c := workspace.SetGrant{Principal: in.Principal}
			for _, name := range in.Capabilities {
				c.Capabilities = append(c.Capabilities, workspace.Capability(name))
			}
			return written("", c), nil
		}),
	}
}

// join returns capabilities as a text.
func join(all []workspace.Capability) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = string(c)
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func listReview(ctx context.Context, w Workspace, call drawbridge.Call, in reviewListInput) (answer Answer[reviewListOutput], err error) {
	part := workspace.Window{Offset: in.Offset}
	var b strings.Builder
	switch in.Kind {
	case "", "candidates":
		all, err := w.Candidates(ctx, call, part)
		for _, r := range all {
			fmt.Fprintf(&b, "%s  %s %s  %s: %s\n", r.Revision, r.Kind, r.Entity, r.State, describeStamp(r.Stamp))
		}
		answer.Value.Candidates = slices.Clone(all)
		return finished(answer, b.String(), err)
	case "deviations":
		all, err := w.Deviations(ctx, call, part)
		for _, d := range all {
			fmt.Fprintf(&b, "%s  %s disagrees with %s, %s\n", d.Entity, d.Revision, d.Canonical, d.At.Format(time.RFC3339))
		}
		answer.Value.Deviations = all
		return finished(answer, b.String(), err)
	case "flags":
		all, err := w.Flags(ctx, call, part)
		for _, f := range all {
			fmt.Fprintf(&b, "%s  derived from %s, which changed %s; %d derived from it\n", f.Entity, f.Source, f.At.Format(time.RFC3339), f.Standing)
		}
		answer.Value.Flags = all
		return finished(answer, b.String(), err)
	}
	return answer, unknownAction(in.Kind, "candidates", "deviations", "flags")
}

func finished(answer Answer[reviewListOutput], text string, err error) (Answer[reviewListOutput], error) {
	if answer.Text = text; text == "" {
		answer.Text = "Nothing waits."
	}
	return answer, err
}
