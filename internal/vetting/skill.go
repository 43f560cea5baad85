package vetting

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A SkillStage is a Stage that looks at skills too.
type SkillStage interface {
	// ApplyToSkill gives an entry of a list of skills as it may be shown; nil where it may not. An error keeps the
	// list.
	ApplyToSkill(ctx context.Context, server deck.Server, entry json.RawMessage) (json.RawMessage, error)
}

var _ SkillStage = (*Sanitiser)(nil)

// VetSkill applies those stages to a skill that handle skills. The error is theirs, or that none of them does.
func (c Chain) VetSkill(ctx context.Context, server deck.Server, entry json.RawMessage) (_ json.RawMessage, err error) {
	looked := false
	for _, stage := range c {
		if s, ok := stage.(SkillStage); ok && entry != nil {
			looked = true
			if entry, err = s.ApplyToSkill(ctx, server, entry); err != nil {
				return nil, err
			}
		}
	}
	if !looked {
		return nil, errors.New("vet a skill: nobody looks at them")
	}
	return entry, nil
}

// maxSkills bounds how many skills a Sanitiser knows, maxSkillBytes what is shown of all of them: lists are asked for
// again and again, and may have other entries each time.
const (
	maxSkills     = 4096
	maxSkillBytes = 32 << 20
)

// ApplyToSkill implements [SkillStage]. A skill is found by its URI, so one whose URI would be another is not shown.
func (s *Sanitiser) ApplyToSkill(ctx context.Context, m deck.Server, entry json.RawMessage) (json.RawMessage, error) {
	key := sha256.Sum256([]byte(rulesID(m) + "\x00" + string(entry)))
	s.mu.Lock()
	shown, ok := s.skills[key]
	s.mu.Unlock()
	if ok {
		return shown, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := s.sanitiseItem(m, partSkills, 0, entry)
	if err != nil {
		return nil, err
	}
	shown = append(json.RawMessage(nil), entry...)
	if len(l.Definition) > 0 {
		shown = l.Definition
	}
	if l.LeftOut != "" || rawjson.GetString(shown, "uri") != rawjson.GetString(entry, "uri") {
		shown = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.skills) >= maxSkills || s.skillBytes+len(shown) > maxSkillBytes {
		clear(s.skills)
		s.skillBytes = 0
	}
	s.skills[key] = shown
	s.skillBytes += len(shown)
	return shown, nil
}
