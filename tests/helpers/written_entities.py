"""Mentions written back as the values of `Entity=`, in the order that CorefUD prescribes."""


def entity_values(mentions, n_words):
    """The value of each word; None where no mention begins or ends.

    Closing brackets come before opening ones, inner mentions closing first. A mention of one word
    is opened like the others, or comes before what closes if nothing else opens.
    """
    found = []
    for word in range(n_words):
        opening = [m for m in mentions if m.span[0] == word]
        ends = [m for m in mentions if m.span[0] < word < m.span[1] == word + 1]
        closing = "".join(f"{closed_as(m)})" for m in reversed(ends))
        opened = "".join(
            "(" + "-".join(m.attributes.values()) + ")" * (m.span[1] == word + 1) for m in opening
        )
        single_only = all(m.span[1] == word + 1 for m in opening)
        found.append((opened + closing if single_only else closing + opened) or None)
    return found


def closed_as(mention):
    return f"{mention.entity}[{mention.part}]" if mention.part else mention.entity
