package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// checkTimeout is the time limit for the test of one model.
const checkTimeout = 10 * time.Second

// A CheckResult is the result of the test of one model.
type CheckResult struct {
	// Subject is the kind of the tested model, such as "the embedding model".
	Subject string
	// Answer describes the response for people; empty if there was no response.
	Answer string
	// Slow is a warning if the response took longer than a search waits for the model. It also tells what to do; it is
	// empty if the response was fast enough.
	Slow string
	// Skipped is true if the model was not tested because its key comes from a command.
	Skipped bool
	// Err is the error of the test.
	Err error
}

// CheckModels sends small test requests to the models that the settings name. If commands is false, it executes no
// command: it skips models whose keys come from commands.
func CheckModels(ctx context.Context, o ModelOptions, commands bool) (all []CheckResult) {
	o.OpenVectors = nil
	s := o.Settings
	for _, one := range []struct {
		about string
		set   bool
		key   config.SecretRef
		look  func(context.Context, *CheckResult) error
	}{
		{"the embedding model", !isEmbeddingUnset(s.Embedding), s.Embedding.Key, o.checkEmbedding},
		{"the rerank model", !isRerankUnset(s.Rerank), s.Rerank.Key, o.checkRerank},
	} {
		c := CheckResult{Subject: one.about}
		switch {
		case !one.set:
			continue
		case needsCommand(one.key) && !commands:
			c.Skipped = true
		default:
			within, cancel := context.WithTimeout(ctx, checkTimeout)
			c.Err = one.look(within, &c)
			cancel()
		}
		all = append(all, c)
	}
	return all
}

func needsCommand(k config.SecretRef) bool {
	for _, p := range k.Parts {
		if p.Kind == config.CommandPart {
			return true
		}
	}
	return false
}

func (o ModelOptions) checkEmbedding(ctx context.Context, c *CheckResult) error {
	e, end, err := o.openEmbedder()
	if err != nil {
		return invalidSettings(embeddingTable, err)
	}
	defer end()
	// the first request finds the key and opens the connection; its time does not count
	if _, err := e.Embed(ctx, index.RoleQuery, []string{"hello"}); err != nil {
		return err
	}
	began := time.Now()
	vectors, err := e.Embed(ctx, index.RoleQuery, []string{"read a file"})
	if err != nil {
		return err
	}
	took, most := time.Since(began), cmp.Or(o.Settings.Embedding.Deadline, index.DefaultDeadline)
	c.Answer = fmt.Sprintf("%s, and answers with %d numbers", e.Model(), len(vectors[0]))
	c.noteSlow(took, most, embeddingTable+" deadline")
	return nil
}

func (o ModelOptions) checkRerank(ctx context.Context, c *CheckResult) error {
	r, end, err := o.openReranker()
	if err != nil {
		return invalidSettings(rerankTable, err)
	}
	defer end()
	texts := []string{"Read the contents of a file", "Send an e-mail"}
	if _, err := r.Rerank(ctx, "read a file", texts); err != nil {
		return err
	}
	began := time.Now()
	scores, err := r.Rerank(ctx, "read a file", texts)
	if err != nil {
		return err
	}
	took, most := time.Since(began), cmp.Or(o.Settings.Rerank.Timeout, index.DefaultRerankDeadline)
	if c.Answer = cmp.Or(o.Settings.Rerank.Model, o.Settings.Rerank.URL) + ", and answers"; scores[0] <= scores[1] {
		return errors.New(
			"it takes sending an e-mail for a better answer to \"read a file\" than reading one: is it a model for this?")
	}
	c.noteSlow(took, most, rerankTable+" timeout")
	return nil
}

func (c *CheckResult) noteSlow(took, most time.Duration, setting string) {
	if took > most {
		c.Slow = fmt.Sprintf("it takes %v, and a question waits %v: raise %s, or tools are found without it",
			took.Round(time.Millisecond), most, setting)
	}
}
