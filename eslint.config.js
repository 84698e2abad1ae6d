import js from '@eslint/js';
import globals from 'globals';

// Text becomes part of the document as text: nothing that reads a string as HTML or as code.
const readsHtml = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'setHTMLUnsafe', 'write', 'writeln', 'srcdoc'];

export default [
  js.configs.recommended,
  {
    files: ['src/bmpaudit/report/page_parts/*.js'],
    languageOptions: {ecmaVersion: 2023, sourceType: 'module', globals: {...globals.browser, Plotly: 'readonly'}},
    linterOptions: {reportUnusedDisableDirectives: 'error'},
    rules: {
      eqeqeq: 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-restricted-properties': ['error', ...readsHtml.map((property) => ({property}))],
      'no-restricted-syntax': [
        'error',
        {selector: "AssignmentExpression[left.object.name='window']", message: 'Leave nothing in the window.'},
      ],
      'no-shadow': 'error',
      'no-unused-vars': ['error', {ignoreRestSiblings: true}],
      'no-use-before-define': ['error', {functions: false}],
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
    },
  },
];
