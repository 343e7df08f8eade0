"""Chats, against plain transformers with the same template; spans and refusals by hand."""

import json
from itertools import product

import pytest
import torch
import transformers
from tiny_models import FAMILIES, build, build_config
from tiny_readings import collected

from probes.common.errors import UserError
from probes.extraction.encoder import Encoder
from probes.extraction.text_vectors import TextVectors
from probes.extraction.vectors import layer_part
from probes.extraction.views import Text
from probes.tasks.positions import Position

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|endoftext|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The last answer is written in another way than those before it, and each begins with the text.
OTHER = (
    "<|begin_of_text|>{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "{% if loop.last %}think: {% endif %}{{ m['content'] }}<|end_of_text|>"
    "{% else %}[{{ m['content'] }}]{% endif %}{% endfor %}"
)
MODELS = {"qwen3": ("Qwen3Model", CHATML), "llama-3": ("LlamaModel", OTHER)}
CHATS = [
    [("user", " the old user "), ("assistant", "the boats"), ("user", "user")],
    [("system", "keep silent"), ("user", "who came?"), ("assistant", "the birds")],
    [("user", "the light"), ("assistant", "the light"), ("user", "no"), ("assistant", "boats\\n")],
    [("user", "the harbour keeper counts " * 3), ("assistant", "")],
]
NAMES = ("mean", "max", "last", "last:2", "user", "assistant", "after:the", "match:boats|birds")


def messages(chat):
    return [{"role": role, "content": content} for role, content in chat]


def text_of(chat, **more):
    return Text((json.dumps(messages(chat)),), (0, 1), written=True, chat=True, **more)


@pytest.fixture(scope="module", params=MODELS)
def encoder(request):
    kind, template = MODELS[request.param]
    _, tokenizer = build(request.param, kind)
    family = FAMILIES[request.param]
    torch.manual_seed(7)
    config = build_config(family, family.tokenizer(), max_position_embeddings=256)
    model = getattr(transformers, kind)(config).eval()
    tokenizer.chat_template = template
    made = Encoder(model, tokenizer, name=request.param, device="cpu")
    made.tokenizer_given = tokenizer
    return made


def by_hand(tokenizer, chat):
    """Ids of a chat, and the piece of each position."""
    begun = chat[-1][0] != "assistant"
    given = {"add_generation_prompt": begun}
    rendered = tokenizer.apply_chat_template(messages(chat), tokenize=False, **given)
    ids = tokenizer.apply_chat_template(messages(chat), return_dict=True, **given)["input_ids"]
    split = tokenizer(rendered, add_special_tokens=False)
    assert split.input_ids == ids
    letters, at = {}, 0
    for role, content in chat:
        head = f"<|im_start|>{role}\n" if "<|im_start|>" in rendered else ""
        written = head + (content.strip() if head else content)
        at = rendered.index(written, at) + len(written)
        letters[role] = at - 1 if content else None
    start = rendered.rindex("the") + 3 if "the" in rendered else len(rendered)
    rest = [i for i in range(start, len(rendered)) if not rendered[i].isspace()]
    letters["after:the"] = rest[0] if rest and "the" in rendered else None
    ends = [rendered.rfind(x) + len(x) for x in ("boats", "birds") if x in rendered]
    letters["match:boats|birds"] = max(ends) - 1 if ends else None
    pieces = {k: None if x is None else split.char_to_token(x) for k, x in letters.items()}
    return ids, pieces | {"last": len(ids) - 1, "last:2": len(ids) - 2}


def test_vectors_are_those_of_plain_transformers(encoder):
    tokenizer, layers = encoder.tokenizer_given, range(encoder.info.n_layers + 1)
    kept = list(product(layers, map(Position.parse, NAMES)))
    texts = [text_of(chat) for chat in CHATS]
    found = collected(encoder, texts, TextVectors(kept, "float32"), 256)
    for place, chat in enumerate(CHATS):
        ids, pieces = by_hand(tokenizer, chat)
        with torch.no_grad():
            output = encoder.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        states = [*output.hidden_states[:-1], output.last_hidden_state]
        for layer, name in product(layers, NAMES):
            state = states[layer][0]
            whole = {"mean": state.mean(0), "max": state.max(0).values}
            if name not in whole and pieces.get(name) is None:
                continue
            wanted = whole[name] if name in whole else state[pieces[name]]
            own = found[layer_part(layer, Position.parse(name))][place]
            torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-5)


def test_special_tokens_in_messages_are_refused_unless_they_are_meant(encoder):
    special = encoder.words.chats.special[0]
    chat = [("user", f"the {special} boats")]
    with pytest.raises(UserError, match=r"message 1 of a chat contains .*--special-tokens"):
        encoder.split([text_of(chat)])
    (pieces,) = encoder.split([text_of(chat, special=True)])
    assert list(pieces.ids) == by_hand(encoder.tokenizer_given, chat)[0]
    text = f"{special}the boats"
    (pieces,) = encoder.split([Text((text,), (0, 1), written=True, special=True)])
    ids = encoder.tokenizer_given(text, add_special_tokens=False).input_ids
    assert list(pieces.ids) == ids
    with pytest.raises(UserError, match=r"text 3 of train contains .*--messages"):
        encoder.words.chats.require_plain(text, "--text t: text 3 of train")


def test_without_a_template_chats_are_refused():
    encoder = Encoder(*build("gpt2", "GPT2Model"), name="gpt2", device="cpu")
    with pytest.raises(UserError, match="has no chat template"):
        encoder.split([text_of(CHATS[0])])
