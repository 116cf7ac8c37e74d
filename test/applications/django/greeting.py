import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse, HttpResponseRedirect
from django.template import engines
from django.urls import path

settings.configure(
    DEBUG=True,
    SECRET_KEY="of an example",
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)

page = """<!doctype html><title>Greeting</title>
{% if name %}<p>Hello {{ name }}!</p>{% endif %}
<form method="post">{% csrf_token %}<label>Your name <input name="name"></label><button>Greet</button></form>"""

names = []


def greet(request):
    if request.method == "POST":
        names.append(request.POST["name"])
        return HttpResponseRedirect("/")
    name = names[-1] if names else ""
    return HttpResponse(engines["django"].from_string(page).render({"name": name}, request))


urlpatterns = [path("", greet)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
